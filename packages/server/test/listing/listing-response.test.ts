import { expect, test } from 'vitest'
import type { SignLinks } from '../../src/access/signed-links.ts'
import type { PageSettings } from '../../src/core/page.ts'
import { createListingResponder } from '../../src/listing/listing-routes.ts'
import type { ListPage } from '../../src/listing/pages.ts'
import type { BucketId, Grant, TokenId } from '../../src/storage/catalog/records.ts'

const listed = { bucketId: 1 as BucketId, revision: 5, expired: 0 }
const grant: Grant = {
  tokenId: 'tok' as TokenId,
  ...listed,
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
  total: 30,
  removesMetadata: false,
}
const urls = { baseUrl: 'http://h', extensions: true, links: 'all' } as const
const defaults = {
  urls: urls as PageSettings,
  envelope: 'bare' as 'bare' | 'wrapped',
  epoch: 'first',
  page: '2',
  acceptEncoding: 'identity',
  granted: grant,
}
const context = ({ urls, envelope, epoch }: typeof defaults) => ({
  urls,
  vary: () => 'Authorization',
  settings: { envelope },
  catalog: { epoch },
})
const signLinks: SignLinks = async () => ({ tag: 'key.900', expires: 900, sign: ({ id }) => id })
const listPage: ListPage = async ({ state }, _page, gzip) => ({
  state,
  coding: gzip ? 'gzip' : 'identity',
  body: { length: 1, own: 1, whole: 'x', chunks: () => [] },
  isCached: false,
})

async function tagWith(change: Partial<typeof defaults>): Promise<string | undefined> {
  const parts = { ...defaults, ...change }
  const { page, acceptEncoding, granted } = parts
  const respond = createListingResponder(context(parts), { listPage, signLinks })
  const { head } = await respond(granted, { page, acceptEncoding, ifNoneMatch: undefined })
  return head[head.indexOf('etag') + 1]
}

test('L16 equal inputs have the same entity tag', async () => {
  expect(await tagWith({})).toBe(await tagWith({}))
})

test.each([
  ['the page', { page: '3' }],
  ['the bucket', { granted: { ...grant, bucketId: 2 as BucketId } }],
  ['the revision', { granted: { ...grant, revision: 6 } }],
  ['expired items', { granted: { ...grant, expired: 1 } }],
  ['the content coding', { acceptEncoding: 'gzip' }],
  ['the epoch', { epoch: 'second' }],
  ['the envelope', { envelope: 'wrapped' as const }],
  ['the base URL', { urls: { ...urls, baseUrl: 'http://i' } }],
  ['the extensions', { urls: { ...urls, extensions: false } }],
  ['signed URLs', { granted: { ...grant, signsPages: true } }],
  ['the links', { urls: { ...urls, links: 'window' as const } }],
])('L16 the entity tag changes with %s', async (_what, change) => {
  expect(await tagWith(change)).not.toBe(await tagWith({}))
})

const cachedListing = {
  state: '5',
  coding: 'identity',
  body: { length: 1, own: 1, whole: Buffer.from('x'), chunks: () => [] },
  isCached: true,
} as const

test('L16 the headers of a cached listing are built once, and a matching tag is still a 304', async () => {
  const respond = createListingResponder(context(defaults), {
    listPage: async () => cachedListing,
    signLinks,
  })
  const request = (ifNoneMatch?: string) =>
    respond(grant, { page: '2', acceptEncoding: undefined, ifNoneMatch })
  const first = await request()
  expect(await request()).toBe(first)
  expect(await request('"another"')).toEqual(first)
  expect(await request('*')).toMatchObject({ status: 304, body: null })
  expect(await request(first.head[first.head.indexOf('etag') + 1])).toMatchObject({ status: 304, body: null })
})
