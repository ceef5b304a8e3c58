import { setImmediate } from 'node:timers/promises'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { beforeAll, expect, test } from 'vitest'
import { createClient, type ItemOptions, ProblemError } from '../../packages/client/src/index.ts'
import { runHere } from '../harness/commands.ts'
import { type SharedServer, startServer } from '../harness/server.ts'
import { sharedServer } from '../harness/shared-server.ts'
import { makeToken } from '../harness/token.ts'
import { caught, newBucket, newToken, urlsOf } from './buckets.ts'

let server: SharedServer
beforeAll(async () => {
  server = await sharedServer()
})

test('an item is uploaded, listed, described, fetched and deleted, by its id and by its URL', async () => {
  const client = await newBucket(server, 'one-item')
  const file = new File(['a,b\n1,2\n'], 'Übersicht "1".csv', { type: 'text/csv' })
  const media = await client.upload(file)
  expect(media).toMatchObject({
    url: `${server.url}/media/${media.id}.csv`,
    filename: 'Übersicht "1".csv',
    content_type: 'text/csv',
    size: 8,
    width: null,
  })
  expect(await client.listPage(1)).toMatchObject({ data: [media.url], total: 1, from: 1, to: 1 })
  for (const reference of [media.id, media.url, new URL(media.url)]) {
    expect(await client.describe(reference)).toEqual(media)
    const response = await client.get(reference)
    expect([response.status, response.headers.get('content-type')]).toEqual([
      200,
      expect.stringMatching(/^text\/csv/),
    ])
    expect(await response.text()).toBe('a,b\n1,2\n')
  }
  await client.delete(media.url)
  expect(await client.listPage(1)).toMatchObject({ data: [], total: 0, from: null, to: null })
  const calls = [client.delete(media.id), client.describe(media.url), client.get(media.id)]
  for (const error of await Promise.all(calls.map(caught))) {
    expect(error).toMatchObject({
      name: 'ProblemError',
      status: 404,
      attempts: 1,
      problem: { code: 'media-unknown', status: 404, type: `${server.url}/problems/media-unknown` },
    })
  }
})

test('the bytes of a response are complete when they are read after a collection of garbage', async () => {
  const client = await newBucket(server, 'collected')
  const { id } = await client.upload(Buffer.from('kept'))
  setFlagsFromString('--expose-gc')
  const collectGarbage: () => void = runInNewContext('gc')
  const response = await client.get(id)
  // What Node.js does after a collection runs in tasks of their own.
  for (let turn = 0; turn < 5; turn += 1) {
    await setImmediate()
    collectGarbage()
  }
  expect(await response.text()).toBe('kept')
})

test('L16 a changed page is returned with its ETag, an unchanged one as null', async () => {
  const client = await newBucket(server, 'tagged')
  const empty = await client.listPageUnless(null, 1)
  expect(empty).toMatchObject({ page: { total: 0 }, etag: expect.stringMatching(/^"/) })
  const etag = empty?.etag ?? ''
  expect(await client.listPageUnless(etag, 1)).toBeNull()
  const { url } = await client.upload(new Uint8Array(1))
  const changed = await client.listPageUnless(etag, 1)
  expect(changed?.page).toEqual(await client.listPage(1))
  expect([changed?.page.data, changed?.etag === etag]).toEqual([[url], false])
  expect(await client.listPageUnless(changed?.etag ?? '', 1)).toBeNull()
  await expect(client.listPageUnless(etag, 0)).rejects.toThrow(TypeError)
})

test('K4, K8 items() returns the media objects in both orders, and those of one kind and time', async () => {
  const client = await newBucket(server, 'item-lists')
  const stored = []
  for (const name of ['a.txt', 'b.bin', 'c.txt', 'd.txt'])
    stored.push(await client.upload(new File([name], name)))
  const namesOf = async (options: ItemOptions) => {
    const names = []
    for await (const { filename } of client.items({ batchSize: 2, ...options })) names.push(filename)
    return names
  }
  const found = []
  for await (const item of client.items()) found.push(item)
  expect(found).toEqual(stored)
  expect(await namesOf({ order: 'newest' })).toEqual(['d.txt', 'c.txt', 'b.bin', 'a.txt'])
  expect(await namesOf({ kind: 'document' })).toEqual(['a.txt', 'c.txt', 'd.txt'])
  expect(await namesOf({ to: new Date(0) })).toEqual([])
  expect((await namesOf({ from: new Date(0) })).toSorted()).toEqual(['a.txt', 'b.bin', 'c.txt', 'd.txt'])
})

test('K11 search() returns the media objects whose names have all words', async () => {
  const client = await newBucket(server, 'searches')
  for (const name of ['Été à la plage.txt', 'Plage.txt', 'montagne été.txt'])
    await client.upload(new File([name], name))
  const found = []
  for await (const { filename } of client.search('PLAGE ete', { batchSize: 1 })) found.push(filename)
  for await (const { filename } of client.search('ete', { order: 'newest' })) found.push(filename)
  expect(found).toEqual(['Été à la plage.txt', 'montagne été.txt', 'Été à la plage.txt'])
})

test('250 files are returned in the order of their upload, from every form of the URL', async () => {
  const token = await newToken(server, 'many')
  const client = createClient({ url: server.url, token })
  const uploaded: string[] = []
  for (let turn = 0; turn < 10; turn += 1) {
    const some = await Promise.all(
      Array.from({ length: 25 }, (_, index) => client.upload(new Blob([`${turn}/${index}`]))),
    )
    uploaded.push(...some.map(({ url }) => url))
  }
  const urls = await urlsOf(client)
  expect(urls).toHaveLength(250)
  for (let start = 0; start < 250; start += 25) {
    // Files uploaded at the same time may be in any order.
    expect(urls.slice(start, start + 25).sort()).toEqual(uploaded.slice(start, start + 25).sort())
  }

  for (const path of ['/', '/api/media', '/api/media/', '/v1/media', '/v1/media/?page=9']) {
    expect(await urlsOf(createClient({ url: `${server.url}${path}`, token }))).toEqual(urls)
  }
  const last = await client.listPage(25)
  expect(last).toMatchObject({ current_page: 25, last_page: 25, from: 241, to: 250, next_page_url: null })
  expect(last.links).toHaveLength(27)

  for (const url of urls.slice(0, 3)) await client.delete(url)
  expect(await urlsOf(client)).toEqual(urls.slice(3))
})

test('Z2, Z3, Z4 deleted items are restored, or deleted permanently', async () => {
  const { name } = await (await newBucket(server, 'trash')).bucket()
  const { token } = await makeToken(server, '--bucket', name)
  await runHere(server.data, 'bucket set', name, '--trash-days', '1')
  const client = createClient({ url: server.url, token })
  const items = [await client.upload(new Blob(['a'])), await client.upload(new Blob(['b']))]
  const [one = '', two = ''] = items.map(({ url }) => url)
  await client.delete(one)
  await client.deleteMany([two])
  const trashed = []
  for await (const item of client.trash()) trashed.push(item)
  expect(trashed.map(({ url }) => url)).toEqual([two, one])
  expect(trashed[0]).toMatchObject({
    ...items[1],
    deleted_at: expect.any(String),
    expires_at: expect.any(String),
  })
  expect(await client.restore([one, 'nobody'])).toEqual({ restored: [one], missing: ['nobody'] })
  expect(await client.deleteFromTrash([one, two])).toEqual({ deleted: [two], missing: [one] })
  await client.delete(one)
  await client.emptyTrash()
  expect(await client.bucket()).toMatchObject({ items: 0, bytes: 0, trash_days: 1, trash_items: 0 })
})

test('M5, M6 an item is updated, and with an ETag only if it has not changed', async () => {
  const client = await newBucket(server, 'updates')
  const { id, url } = await client.upload(new Blob(['x']), { filename: 'one.txt' })
  const { media, etag } = await client.describeTagged(url)
  expect([media.alt_text, media.caption]).toEqual([null, null])
  if (etag === null) throw new Error('no ETag')
  const changes = { filename: 'two.txt', caption: 'a caption' }
  const updated = await client.update(url, changes, { ifMatch: etag })
  expect(updated).toEqual({ ...media, ...changes })
  await expect(client.update(id, { caption: null }, { ifMatch: etag })).rejects.toMatchObject({ status: 412 })
  expect(await client.update(id, { caption: null })).toEqual({ ...updated, caption: null })
  await client.delete(id)
})

test.each([
  ['wrapped', { MEDIABUCKET_ENVELOPE: 'wrapped' }],
  ['windowed', { MEDIABUCKET_LINKS: 'window' }],
  ['without extensions', { MEDIABUCKET_EXTENSIONS: 'off' }],
  ['behind another base URL', { MEDIABUCKET_BASE_URL: 'https://media.example.org/box' }],
])('a service with pages %s is listed and emptied in the same way', async (_name, settings) => {
  await using other = await startServer(settings)
  const client = createClient({ url: other.url, token: other.token })
  await Promise.all(
    Array.from({ length: 21 }, (_, index) =>
      client.upload(new File([`${index}`], `${index}.txt`, { type: 'text/plain' })),
    ),
  )
  const urls = await urlsOf(client)
  expect(urls).toHaveLength(21)
  const [first = ''] = urls
  const { id } = await client.describe(first)
  expect(await (await client.get(id)).text()).toMatch(/^\d+$/)
  expect(await client.deleteMany(urls)).toEqual({ deleted: urls, missing: [] })
  expect(await urlsOf(client)).toEqual([])
})

test('an unknown token, a missing scope and an unknown token type cause a problem', async () => {
  const reader = await newBucket(server, 'scoped', '--scope', 'media:read')
  const refused = await caught(reader.upload(new Blob(['x'])))
  expect(refused).toBeInstanceOf(ProblemError)
  expect(refused).toMatchObject({ status: 403, problem: { code: 'scope-missing' } })

  const stranger = createClient({ url: server.url, token: 'nonsense' })
  const calls = [stranger.listPage(1), stranger.upload(new Blob(['x']).stream())]
  for (const error of await Promise.all(calls.map(caught))) {
    expect(error).toMatchObject({ name: 'ProblemError', status: 401, problem: { code: 'token-malformed' } })
    expect(String(error)).not.toContain('nonsense')
  }
})

test('no token is in the log of the service', async () => {
  expect(server.stderr()).not.toMatch(/mbkt_[0-9a-z]{8}/)
})

test('T1 a client returns the properties of its token, with any scope', async () => {
  const token = await newToken(server, 'askers', '--name', 'desk', '--scope', 'media:write')
  const client = createClient({ url: `${server.url}/v1/media`, token })
  expect(await client.whoami()).toEqual({
    id: expect.stringMatching(/^tok_/),
    name: 'desk',
    bucket: expect.stringMatching(/^askers-/),
    scopes: ['media:write'],
    created_at: expect.stringMatching(/Z$/),
    expires_at: null,
    ...{ note: null, limits: null, uploaded: null, left: null },
  })
})

test('Q3, US9 a client returns the usage and the quotas of its bucket', async () => {
  const client = await newBucket(server, 'measured')
  await client.upload(new Blob(['12345']))
  expect(await client.bucket()).toEqual({
    name: expect.stringMatching(/^measured-/),
    items: 1,
    bytes: 5,
    reserved_items: 0,
    reserved_bytes: 0,
    max_items: null,
    max_bytes: null,
    trash_days: 0,
    trash_items: 0,
    trash_bytes: 0,
    private: false,
    signed_pages: false,
    public_keys: false,
    public_list: false,
    url_uploads: true,
    ...{ variants: null, public_variants: null, crop: null },
    remove_metadata: false,
    keep_taken_at: true,
    item_days: null,
    max_file_size: null,
    types: null,
    usage_today: {
      ...{ day: expect.stringMatching(/^\d{4}-\d\d-\d\d$/), is_partial: true, items: 1, bytes: 5 },
      ...{ added: { items: 1, bytes: 5 }, removed: { items: 0, bytes: 0 } },
      downloaded_bytes: 0,
      requests: { list: 0, download: 0, upload: 0, other: 0 },
    },
  })
})

test('U14, M7, M8, K14, K15 labels are set in every way of an upload, changed, listed and counted', async () => {
  const client = await newBucket(server, 'labelled')
  const labels = { album: '42', '0.user': 'Zoë "\\' }
  const one = await client.upload(new Uint8Array(1), { labels })
  const chunked = await client.upload(new Uint8Array(2), { labels, piecesAbove: 0 })
  const [formed] = await client.uploadAll([{ source: new Uint8Array(3), filename: 'a' }], { labels })
  for (const item of [one, chunked, formed]) expect(item?.labels).toEqual(labels)
  const bare = await client.upload(new Uint8Array(4))
  expect((await client.update(bare.id, { labels: { album: '43', user: null } })).labels).toEqual({
    album: '43',
  })
  expect(await client.labelMany([one.url, 'nobody'], { album: null, '0.user': 'x' })).toEqual({
    labelled: [one.url],
    missing: ['nobody'],
  })
  const idsOf = async (options: ItemOptions) => {
    const ids: string[] = []
    for await (const { id } of client.items(options)) ids.push(id)
    return ids
  }
  expect(await idsOf({ labels, batchSize: 1 })).toEqual([chunked.id, formed?.id])
  expect(await idsOf({ labels: { '0.user': 'x' } })).toEqual([one.id])
  expect(await client.labels({ key: 'album', limit: 1 })).toEqual([
    { key: 'album', values: [{ value: '42', items: 2 }], has_more: true },
  ])
})
