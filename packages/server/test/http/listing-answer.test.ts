import { IncomingMessage } from 'node:http'
import { Socket } from 'node:net'
import { expect, test } from 'vitest'
import type { BucketId, Grant, TokenId } from '../../src/catalog/catalog.ts'
import { createAnswerListing, type ListingParts } from '../../src/http/listing-answer.ts'

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
  authorise: async () => grant,
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

async function tagWith(change: Partial<typeof usual>): Promise<unknown> {
  const { url, acceptEncoding, granted, ...parts } = { ...usual, ...change }
  const answer = createAnswerListing({ ...parts, authorise: async () => granted })
  const request = new IncomingMessage(new Socket())
  request.url = url
  request.headers['accept-encoding'] = acceptEncoding
  return (await answer(request)).headers['etag']
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
