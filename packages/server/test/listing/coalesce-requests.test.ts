import { expect, test } from 'vitest'
import { Fault } from '../../src/core/faults.ts'
import { emptyLine, type RequestLine } from '../../src/http/request-log.ts'
import {
  type CallersRequest,
  coalesceRequests,
  type ListingResponder,
} from '../../src/listing/listing-routes.ts'
import type { BucketId, Grant, TokenId } from '../../src/storage/catalog/records.ts'

const grant: Grant = {
  tokenId: 'tok' as TokenId,
  bucketId: 1 as BucketId,
  revision: 1,
  expired: 0,
  scopes: new Set(['media:read']),
  expiresAt: null,
  revokedAt: null,
  lastUsedAt: null,
  subject: null,
  isPrivate: false,
  signsPages: false,
  publicKeys: false,
  urlUploads: true,
  pictures: null,
  nextExpiry: null,
  itemDays: null,
  limits: null,
  fileLimits: null,
  total: 0,
  removesMetadata: false,
}

const plain: CallersRequest = {
  page: undefined,
  authorization: 'Bearer one',
  bucket: undefined,
  acceptEncoding: undefined,
  ifNoneMatch: undefined,
}

/** Responds with an entity tag that counts the responses; records the requests and the verified tokens. */
function counting(limit = Number.POSITIVE_INFINITY) {
  const received: unknown[] = []
  const verified: string[] = []
  const respondToListing: ListingResponder = async (_grant, one) => {
    received.push(one)
    return { status: 200, head: ['etag', `"${received.length}"`], body: null }
  }
  const verifyAuthorization = async (authorization: string) => {
    verified.push(authorization)
    return grant
  }
  let left = limit
  const countToken = () => {
    left -= 1
    return left < 0 ? new Fault('rate-limited', 'Too many.') : null
  }
  const coalesce = coalesceRequests(
    { verifyAuthorization, limits: { countToken }, usage: { countRequest: () => {} } },
    respondToListing,
  )
  const lines: RequestLine[] = []
  const coalesced = (request: CallersRequest) => {
    const line = emptyLine()
    lines.push(line)
    return coalesce(request, line)
  }
  return { received, verified, lines, coalesced }
}

test('E2 a listing waits while so many items have expired that it would pass by them', async () => {
  const counted = Promise.withResolvers<void>()
  let isCounted = false
  const earlierWork = async () => {
    await counted.promise
    isCounted = true
  }
  const coalesced = coalesceRequests(
    {
      verifyAuthorization: async () =>
        isCounted ? grant : { ...grant, expired: Number.MAX_SAFE_INTEGER, earlierWork },
      limits: { countToken: () => null },
      usage: { countRequest: () => {} },
    },
    async ({ expired }) => ({ status: 200, head: ['expired', `${expired}`], body: null }),
  )
  const responses = [coalesced(plain, emptyLine()), coalesced({ ...plain, page: '2' }, emptyLine())]
  counted.resolve()
  for (const response of responses) expect((await response).head).toEqual(['expired', '0'])
})

test('identical requests of one tick share one token verification and one response', async () => {
  const { received, verified, coalesced } = counting()
  await Promise.all([1, 2, 3].map(() => coalesced({ ...plain })))
  expect(received).toHaveLength(1)
  expect(verified).toHaveLength(1)
})

test.each<[string, Partial<CallersRequest>]>([
  ['A6 the token', { authorization: 'Bearer two' }],
  ['L11 the page', { page: '2' }],
  ['L16 the coding', { acceptEncoding: 'gzip' }],
  ['L16 the tag', { ifNoneMatch: '"x"' }],
])('%s makes requests of one tick different', async (_what, change) => {
  const { received, verified, coalesced } = counting()
  const [one, other] = await Promise.all([coalesced(plain), coalesced({ ...plain, ...change })])
  expect(received).toHaveLength(2)
  expect(verified).toEqual([...new Set([plain.authorization, change.authorization ?? plain.authorization])])
  expect(one).not.toBe(other)
})

test('A7, L4 the token is verified and the page read after the tick, and a later request gets a new response', async () => {
  const { received, verified, coalesced } = counting()
  const first = coalesced(plain)
  await Promise.resolve()
  expect(verified).toHaveLength(0)
  const second = coalesced(plain)
  expect(await first).toBe(await second)
  expect(await coalesced(plain)).not.toBe(await first)
  expect(received).toHaveLength(2)
})

test('W2, O3 coalesced requests are counted individually, and the line of each has the token', async () => {
  const { received, lines, coalesced } = counting(2)
  const outcomes = await Promise.allSettled([1, 2, 3, 4].map(() => coalesced({ ...plain })))
  expect(outcomes.map(({ status }) => status)).toEqual(['fulfilled', 'fulfilled', 'rejected', 'rejected'])
  expect(received).toHaveLength(1)
  expect(lines.map(({ token }) => token)).toEqual(['tok', 'tok', 'tok', 'tok'])
})

test('W2 no page is read where all coalesced requests are refused', async () => {
  const { received, coalesced } = counting(0)
  await expect(coalesced(plain)).rejects.toMatchObject({ code: 'rate-limited' })
  expect(received).toHaveLength(0)
})
