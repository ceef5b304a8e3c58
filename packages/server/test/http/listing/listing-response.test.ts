import { expect, test } from 'vitest'
import type { BucketId, Grant, TokenId } from '../../../src/catalog/catalog.ts'
import { createListingResponder, type ListingParts } from '../../../src/http/listing/listing-response.ts'

const listed = { bucketId: 1 as BucketId, revision: 5 }
const grant: Grant = {
  tokenId: 'tok' as TokenId,
  ...listed,
  scopes: new Set(['media:read']),
  expiresAt: null,
  revokedAt: null,
  lastUsedAt: null,
  total: 30,
}
const form = { baseUrl: 'http://h', extensions: true, links: 'all' } as const
const usual: ListingParts & { url: string; acceptEncoding: string; granted: Grant } = {
  listMedia: async ({ revision }, _page, gzip) => ({
    revision,
    coding: gzip ? 'gzip' : 'identity',
    body: { length: 1, own: 1, whole: 'x', chunks: () => [] },
  }),
  form,
  envelope: 'bare',
  epoch: 'first',
  vary: 'Authorization',
  url: '/api/media?page=2',
  acceptEncoding: 'identity',
  granted: grant,
}

async function tagWith(change: Partial<typeof usual>): Promise<string | undefined> {
  const { url, acceptEncoding, granted, ...parts } = { ...usual, ...change }
  const answer = createListingResponder(parts)
  const { head } = await answer(granted, { url, acceptEncoding, ifNoneMatch: undefined })
  return head[head.indexOf('etag') + 1]
}

test('L16 the same state has the same tag', async () => {
  expect(await tagWith({})).toBe(await tagWith({}))
})

test.each([
  ['the page', { url: '/api/media?page=3' }],
  ['the bucket', { granted: { ...grant, bucketId: 2 as BucketId } }],
  ['the revision', { granted: { ...grant, revision: 6 } }],
  ['the content coding', { acceptEncoding: 'gzip' }],
  ['the epoch', { epoch: 'second' }],
  ['the envelope', { envelope: 'wrapped' as const }],
  ['the base URL', { form: { ...form, baseUrl: 'http://i' } }],
  ['the extensions', { form: { ...form, extensions: false } }],
  ['the links', { form: { ...form, links: 'window' as const } }],
])('L16 another tag stands for another state of %s', async (_what, change) => {
  expect(await tagWith(change)).not.toBe(await tagWith({}))
})

const kept = {
  revision: 5,
  coding: 'identity',
  body: { length: 1, own: 1, whole: 'x', chunks: () => [] },
} as const

test('L16 the head of a listing that is kept is made once, and a tag that matches is still answered 304', async () => {
  const answer = createListingResponder({ ...usual, listMedia: async () => kept })
  const ask = (ifNoneMatch?: string) =>
    answer(grant, { url: '/api/media?page=2', acceptEncoding: undefined, ifNoneMatch })
  const first = await ask()
  expect(await ask()).toBe(first)
  expect(await ask('"another"')).toEqual(first)
  expect(await ask('*')).toMatchObject({ status: 304, body: null })
  expect(await ask(first.head[first.head.indexOf('etag') + 1])).toMatchObject({ status: 304, body: null })
})
