import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { beforeAll, expect, test } from 'vitest'
import { openSqliteCatalog } from '../../packages/server/src/storage/catalog/engines/sqlite/sqlite-catalog.ts'
import { newItems, withBytes } from '../../packages/server/test/storage/catalog/samples.ts'
import { withFailpoints } from '../faults/preload.ts'
import { readReached } from '../faults/steps.ts'
import { runHere } from '../harness/commands.ts'
import { temporaryDirectory } from '../harness/directory.ts'
import { expectProblem } from '../harness/problem.ts'
import { scrape } from '../harness/scrape.ts'
import { runCommand, type SharedServer, startServer } from '../harness/server.ts'
import { sharedServer } from '../harness/shared-server.ts'
import { makeToken } from '../harness/token.ts'
import { uniqueName } from '../harness/unique-name.ts'
import { until } from '../harness/until.ts'
import { readItem, readItems, readPage } from '../harness/wire.ts'

let server: SharedServer
beforeAll(async () => {
  server = await sharedServer()
})

const day = 86_400_000
/** In which a few requests end, also on a slow machine. Milliseconds. */
const shortLifetime = 10_000

const iso = (time: number) => new Date(time).toISOString()

/** A new bucket, and requests with a token for it. */
async function newBucket(...settings: string[]) {
  const bucket = uniqueName('expiry')
  const { authorization } = await makeToken(server, '--bucket', bucket)
  if (settings.length > 0) await runHere(server.data, 'bucket set', bucket, ...settings)
  const request = (path: string, init: RequestInit = {}) =>
    server.request(path, { ...init, headers: { authorization, ...init.headers } })
  const upload = async (body: string | FormData, expiresAt: string | null = null) =>
    request('/api/media', {
      method: 'POST',
      body,
      headers: expiresAt === null ? {} : { 'mediabucket-expires-at': expiresAt },
    })
  return { bucket, request, upload }
}

test('E1 an upload states when its items expire, by every kind of upload', async () => {
  const { request, upload } = await newBucket()
  const at = iso(Date.now() + day)
  const keyed = {
    method: 'POST',
    body: 'keyed',
    headers: { 'idempotency-key': 'k', 'mediabucket-expires-at': at },
  }
  const once = await readItem(await request('/api/media', keyed))
  expect(once).toMatchObject({ expires_at: at })
  expect(await readItem(await request('/api/media', keyed))).toEqual(once)
  const raw = await readItem(await upload('raw', at))
  expect(raw).toMatchObject({ expires_at: at })
  expect(await readItem(await request(`/api/media/${raw.id}`))).toMatchObject({ expires_at: at })
  const large = await readItem(await upload('x'.repeat(100_000), at))
  expect(large).toMatchObject({ expires_at: at })
  const form = new FormData()
  form.set('file', new Blob(['form']), 'form.txt')
  expect(await readItem(await upload(form, at))).toMatchObject({ expires_at: at })
  const created = await request('/api/uploads', {
    method: 'POST',
    body: 'tus',
    headers: {
      'tus-resumable': '1.0.0',
      'upload-length': '3',
      'upload-metadata': `expires_at ${Buffer.from(at).toString('base64')}`,
      'content-type': 'application/offset+octet-stream',
    },
  })
  expect(created.status).toBe(201)
  const resumable = created.headers.get('content-location') ?? ''
  expect(await readItem(await request(new URL(resumable, server.url).pathname))).toMatchObject({
    expires_at: at,
  })
  expect(await readItem(await upload('lasting'))).toMatchObject({ expires_at: null })
  const last = '9999-12-31T23:59:59.000Z'
  expect(await readItem(await upload('until the end', last))).toMatchObject({ expires_at: last })
})

test.each(['', 'soon', '2020-01-01T00:00:00Z', '2030-02-30T00:00:00Z', '1900000000'])(
  'E1 an expiry of %j is refused, and nothing is stored',
  async (value) => {
    const { request, upload } = await newBucket()
    await expectProblem(await upload('raw', value), 400, 'request-malformed')
    const created = await request('/api/uploads', {
      method: 'POST',
      headers: {
        'tus-resumable': '1.0.0',
        'upload-length': '3',
        'upload-metadata': `expires_at ${Buffer.from(value).toString('base64')}`,
      },
    })
    await expectProblem(created, 400, 'upload-malformed')
    expect(await readPage(await request('/api/media'))).toMatchObject({ total: 0 })
  },
)

test('E4 a bucket has a default lifetime of new items, which an upload can replace', async () => {
  const { bucket, request, upload } = await newBucket('--item-days', '7')
  const before = Date.now()
  const { expires_at } = await readItem(await upload('default'))
  const lifetime = Date.parse(`${expires_at}`) - 7 * day
  expect(lifetime).toBeGreaterThanOrEqual(before)
  expect(lifetime).toBeLessThanOrEqual(Date.now())
  const later = iso(Date.now() + 30 * day)
  expect(await readItem(await upload('own', later))).toMatchObject({ expires_at: later })
  expect(await (await request('/api/bucket')).json()).toMatchObject({ item_days: 7 })
  await runHere(server.data, 'bucket set', bucket, '--item-days', 'none')
  expect(await readItem(await upload('lasting'))).toMatchObject({ expires_at: null })
})

// These mostly wait, so they run at the same time.

test.concurrent('E1, I2 a keyed request that is repeated after the expiry gets the first response', async () => {
  const { request } = await newBucket()
  const sendTwice = async (size: number) => {
    const at = Date.now() + shortLifetime
    const init = {
      method: 'POST',
      body: 'k'.repeat(size),
      headers: { 'idempotency-key': `late-${size}`, 'mediabucket-expires-at': iso(at) },
    }
    const first = await readItem(await request('/api/media', init))
    await until('the expiry has passed', () => Date.now() > at)
    const again = await request('/api/media', init)
    expect(again.status).toBe(201)
    expect((await readItem(again)).id).toBe(first.id)
  }
  await Promise.all([5, 100_000].map(sendTwice))
})

test.concurrent('E2 an expired item is missing everywhere, and no page, total or entity tag includes it', async () => {
  const { request, upload } = await newBucket('--trash-days', '9')
  const lasting = await readItem(await upload('lasting'))
  const end = Date.now() + shortLifetime
  const item = await readItem(await upload('expiring', iso(end)))
  const large = await readItem(await upload('x'.repeat(100_000), iso(end)))
  const bytes = (url: string) => fetch(url)
  const first = await bytes(item.url)
  expect([first.status, first.headers.get('cache-control')]).toEqual([200, 'public, no-cache'])
  expect((await bytes(large.url)).status).toBe(200)
  const listing = await request('/api/media')
  const etag = listing.headers.get('etag') ?? ''
  expect(await readPage(listing)).toMatchObject({ total: 3 })
  await until('the expiry', async () => (await bytes(item.url)).status === 404)
  expect(Date.now()).toBeGreaterThanOrEqual(end)
  const again = await request('/api/media', { headers: { 'if-none-match': etag } })
  expect(again.status).toBe(200)
  expect(await readPage(again)).toMatchObject({ total: 1, data: [lasting.url] })
  expect((await readItems(await request('/api/items'))).data.map(({ id }) => id)).toEqual([lasting.id])
  for (const { id, url } of [item, large]) {
    expect((await bytes(url)).status).toBe(404)
    for (const method of ['GET', 'DELETE'])
      await expectProblem(await request(`/api/media/${id}`, { method }), 404, 'media-unknown')
    const edit = { method: 'PATCH', body: '{"caption":"x"}', headers: { 'content-type': 'application/json' } }
    await expectProblem(await request(`/api/media/${id}`, edit), 404, 'media-unknown')
  }
  expect(await (await request('/api/bucket')).json()).toMatchObject({ items: 1, bytes: 7, trash_items: 0 })
})

test.concurrent('O4, E2 a start with many expired items listens before they are removed, and lists omit them until then', async () => {
  await using place = await temporaryDirectory()
  await using first = await startServer()
  await first.stop()
  const headers = { authorization: `Bearer ${first.token}` }
  const catalog = await openSqliteCatalog({ directory: first.data, writer: 'direct' })
  const bucket = (await catalog.findBucketNamed('default')) ?? expect.unreachable()
  const items = (count: number, fields: { expiresAt?: number }) =>
    newItems(count).map((item) => withBytes({ ...item, ...fields }))
  await catalog.addItems(bucket.id, items(1_500, { expiresAt: 1 }))
  await catalog.addItems(bucket.id, items(15, {}))
  await catalog.close()
  // The third step is held, when the first ones have counted what they leave.
  const holdUntil = join(place.path, 'go-on')
  const held = withFailpoints({ step: 'before the row is removed', nth: 3, action: { holdUntil } })
  await using server = await startServer({ ...held, MEDIABUCKET_METRICS: 'on' }, first.data)
  await until('the third step', () => readReached(server.data).length > 0)
  const page = await readPage(await server.request('/api/media?page=2', { headers }))
  expect([page.total, page.data.length]).toEqual([15, 5])
  for (const query of ['order=oldest', 'order=newest', 'order=name-desc', 'kind=image']) {
    const ids = new Set<string>()
    for (let after = ''; ; ) {
      const list = await readItems(await server.request(`/api/items?limit=9&${query}${after}`, { headers }))
      for (const { id } of list.data) ids.add(id)
      if (list.next_cursor === null) break
      after = `&after=${list.next_cursor}`
    }
    expect(ids.size).toBe(15)
  }
  const numbered = await server.request('/api/items?page=2&per_page=10', { headers })
  expect(await numbered.json()).toMatchObject({ meta: { total: 15, from: 11, to: 15 } })
  expect(await (await server.request('/api/bucket', { headers })).json()).toMatchObject({ items: 15 })
  const { stdout } = await runCommand(['bucket', 'list', '--json'], { MEDIABUCKET_DATA: server.data })
  expect(stdout).toContain('"items":15,')
  expect((await scrape(server)).value('expired_items')).toBe(1_300)
  expect(server.log()).toContainEqual(
    expect.objectContaining({ left: 1_300, msg: expect.stringContaining('items of a bucket have expired') }),
  )
  await writeFile(holdUntil, '')
  await until('their removal', async () => (await scrape(server)).value('expired_items') === 0)
  expect((await readPage(await server.request('/api/media', { headers }))).total).toBe(15)
})
