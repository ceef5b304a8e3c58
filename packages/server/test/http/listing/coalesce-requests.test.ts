import { expect, test } from 'vitest'
import type { BucketId, Grant, TokenId } from '../../../src/catalog/catalog.ts'
import { Fault } from '../../../src/core/fault.ts'
import { coalesceRequests } from '../../../src/http/listing/coalesce-requests.ts'
import type { FastPathRequest } from '../../../src/http/listing/fast-path-request.ts'
import type { ListingResponder } from '../../../src/http/listing/listing-response.ts'

const grant: Grant = {
  tokenId: 'tok' as TokenId,
  bucketId: 1 as BucketId,
  revision: 1,
  scopes: new Set(['media:read']),
  expiresAt: null,
  revokedAt: null,
  lastUsedAt: null,
  total: 0,
}

const plain: FastPathRequest = {
  url: '/api/media',
  authorization: 'Bearer one',
  acceptEncoding: undefined,
  ifNoneMatch: undefined,
  origin: undefined,
}

/** Answers with a tag that counts the answers given; knows what it was asked, and whose token was judged. */
function counting(limit = Number.POSITIVE_INFINITY) {
  const asked: unknown[] = []
  const judged: string[] = []
  const respondToListing: ListingResponder = async (_grant, one) => {
    asked.push(one)
    return { status: 200, head: ['etag', `"${asked.length}"`], body: null }
  }
  const verifyAuthorization = async (authorization: string) => {
    judged.push(authorization)
    return grant
  }
  let left = limit
  const countToken = () => {
    left -= 1
    return left < 0 ? new Fault('rate-limited', 'Too many.') : null
  }
  const share = coalesceRequests({
    verifyAuthorization,
    countToken,
    respondToListing,
    corsHeaders: () => ({}),
  })
  return { asked, judged, share }
}

test('requests of one turn that are alike share one check and one answer', async () => {
  const { asked, judged, share } = counting()
  await Promise.all([1, 2, 3].map(() => share({ ...plain })))
  expect(asked).toHaveLength(1)
  expect(judged).toHaveLength(1)
})

test.each<[string, Partial<FastPathRequest>]>([
  ['A6 the token', { authorization: 'Bearer two' }],
  ['L11 the page', { url: '/api/media?page=2' }],
  ['L16 the coding', { acceptEncoding: 'gzip' }],
  ['L16 the tag', { ifNoneMatch: '"x"' }],
  ['C1 the origin', { origin: 'https://app.example.org' }],
])('%s tells requests of one turn apart', async (_what, change) => {
  const { asked, judged, share } = counting()
  const [one, other] = await Promise.all([share(plain), share({ ...plain, ...change })])
  expect(asked).toHaveLength(2)
  expect(judged).toEqual([plain.authorization, change.authorization ?? plain.authorization])
  expect(one).not.toBe(other)
})

test('A7, L4 an answer is begun after all who share it have come, and is shared with nobody who comes later', async () => {
  const { asked, judged, share } = counting()
  const first = share(plain)
  await Promise.resolve()
  expect(judged).toHaveLength(0)
  const second = share(plain)
  expect(await first).toBe(await second)
  expect(await share(plain)).not.toBe(await first)
  expect(asked).toHaveLength(2)
})

test('W2 each of the requests that share an answer is counted', async () => {
  const { asked, share } = counting(2)
  const outcomes = await Promise.allSettled([1, 2, 3, 4].map(() => share({ ...plain })))
  expect(outcomes.map(({ status }) => status)).toEqual(['fulfilled', 'fulfilled', 'rejected', 'rejected'])
  expect(asked).toHaveLength(1)
})

test('W2 a page is read for none of the requests where all are refused', async () => {
  const { asked, share } = counting(0)
  await expect(share(plain)).rejects.toMatchObject({ code: 'rate-limited' })
  expect(asked).toHaveLength(0)
})
