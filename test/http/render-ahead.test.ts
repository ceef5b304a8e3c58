import { expect, test } from 'vitest'
import { bucketWith } from '../harness/bucket.ts'
import { film, pdf } from '../harness/films.ts'
import { filePart, formBytes, sendForm } from '../harness/form.ts'
import {
  hollowPng,
  noise,
  quarters,
  renderCount,
  renderersOf,
  uploadPicture,
  variantUrl,
} from '../harness/pictures.ts'
import { expectProblem } from '../harness/problem.ts'
import { scrape } from '../harness/scrape.ts'
import { startServer, type TestServer } from '../harness/server.ts'
import { needTools } from '../harness/tools.ts'
import { itemOf, tusOf } from '../harness/tus.ts'
import { until } from '../harness/until.ts'
import { upload } from '../harness/upload.ts'
import { readItem, readItems, readStoredItems } from '../harness/wire.ts'

const on = { MEDIABUCKET_RENDER_AHEAD: 'on' }

const thumbhashOf = async (server: TestServer, id: string) =>
  (await readItem(await server.request(`/api/media/${id}`))).thumbhash

/** As browsers request a picture. */
const requestThumb = (server: TestServer, id: string) =>
  server.request(variantUrl(server, id), { headers: { accept: 'image/avif,image/webp,*/*;q=0.8' } })

/** One upload of each kind; small and large ones, and those of types that need a program. */
async function uploadEachKind(server: TestServer): Promise<string[]> {
  const small = new Uint8Array(await quarters(600, 400).png().toBuffer())
  const large = new Uint8Array(await noise(800).png().toBuffer())
  const raw = async (body: Uint8Array<ArrayBuffer>) =>
    (
      await readItem(
        await server.request('/api/media', {
          method: 'POST',
          headers: { 'content-type': 'image/png' },
          body,
        }),
      )
    ).id
  const resumable = async (body: Uint8Array<ArrayBuffer>) => {
    const tus = tusOf(server)
    const path = await tus.createWithLength(body.length)
    const half = Math.floor(body.length / 2)
    await tus.sendChunk(path, 0, body.subarray(0, half))
    return (await itemOf(server, await tus.sendChunk(path, half, body.subarray(half)))).id
  }
  const form = await sendForm(
    server,
    formBytes(filePart('a.png', small, 'image/png'), filePart('b.png', large, 'image/png')),
  )
  const listed = (await readStoredItems(form)).map(({ id }) => id)
  const single = [await raw(small), await raw(large), await resumable(small), await resumable(large)]
  needTools('pdftoppm')
  const video = new Uint8Array(await film('mp4'))
  const others = [
    await upload(server, video, { name: 'a.mp4', type: 'video/mp4' }),
    await upload(server, pdf(), { name: 'a.pdf', type: 'application/pdf' }),
  ]
  return [...listed, ...single, ...others.map(({ id }) => id)]
}

// The other tests have one worker.
test('V16, V13 after an upload of any kind to two workers, the ThumbHash appears and the first request is served from the store', async () => {
  await using server = await startServer({ ...on, MEDIABUCKET_WORKERS: '2' })
  const ids = await uploadEachKind(server)
  for (const id of ids) await until('it is rendered ahead', () => thumbhashOf(server, id))
  expect(await renderCount(server)).toBe(ids.length)
  for (const id of ids) {
    const response = await requestThumb(server, id)
    expect([response.status, response.headers.get('content-type')]).toEqual([200, 'image/avif'])
  }
  expect(await renderCount(server)).toBe(ids.length)
})

test('V16, H1 a thumbnail of a private bucket that was rendered ahead needs a token', async () => {
  await using server = await startServer(on)
  const { authorization } = await bucketWith(server, '--private', 'on')
  const bytes = new Uint8Array(await quarters(60, 40).png().toBuffer())
  const { id } = await upload(server, bytes, { name: 'a.png', type: 'image/png', authorization })
  await until('it is rendered', async () => (await renderCount(server)) === 1)
  expect((await fetch(variantUrl(server, id))).status).toBe(404)
  const headers = { authorization, accept: 'image/avif' }
  expect((await fetch(variantUrl(server, id), { headers })).status).toBe(200)
})

/** Stores pictures that take long to render, by one request. */
async function storeExpensive(server: TestServer, count: number): Promise<string[]> {
  const bytes = await quarters(4000, 3000).png().toBuffer()
  const parts = Array.from({ length: count }, (_, index) => filePart(`${index}.png`, bytes, 'image/png'))
  const response = await sendForm(server, formBytes(...parts))
  return (await readStoredItems(response)).map(({ id }) => id)
}

async function countRendered(server: TestServer): Promise<number> {
  const { data } = await readItems(await server.request('/api/items?limit=200'))
  return data.filter(({ thumbhash }) => thumbhash !== null).length
}

test('V16 a request overtakes the items that wait to be rendered ahead, also one that takes long, and they are rendered afterwards', async () => {
  await using server = await startServer({ ...on, MEDIABUCKET_VARIANT_PROCESSES: '1' })
  const ids = await storeExpensive(server, 8)
  const renderer = await until('a process renders', () => renderersOf(server)[0])
  process.kill(renderer, 'SIGSTOP')
  const waiting = (await scrape(server)).value('render_ahead_items') ?? 0
  expect(waiting).toBeGreaterThan(ids.length / 2)
  // The newest items are rendered first.
  const [oldest = ''] = ids
  expect((await requestThumb(server, oldest)).status).toBe(200)
  expect(await countRendered(server)).toBeLessThan(ids.length / 2)
  // The renders get little time on a busy machine, because they have the lowest priority.
  await until('all are rendered', async () => (await countRendered(server)) === ids.length, 150_000)
  expect(await renderCount(server)).toBe(ids.length)
})

test('V16, O5 a stop drops the items that wait to be rendered ahead; their first requests render them', async () => {
  const settings = { MEDIABUCKET_VARIANT_PROCESSES: '1' }
  await using server = await startServer({ ...on, ...settings })
  const ids = await storeExpensive(server, 10)
  await until('one is being rendered', async () => (await countRendered(server)) > 0)
  expect(await server.stop()).toBe(0)
  expect(server.log().filter(({ level }) => Number(level) >= 40)).toEqual([])
  await using later = await startServer(settings, server.data)
  const { data } = await readItems(
    await later.request('/api/items?limit=200', { headers: { authorization: `Bearer ${server.token}` } }),
  )
  expect(data.filter(({ thumbhash }) => thumbhash === null).length).toBeGreaterThan(ids.length / 2)
  expect((await requestThumb(later, ids[0] ?? '')).status).toBe(200)
})

test('V16, V6 a render ahead that fails is not repeated by a request, and one over the limit of pixels is not tried', async () => {
  await using server = await startServer(on)
  const failures = async () =>
    (await scrape(server)).value('variant_seconds_count', 'variant="thumb",outcome="unreadable"') ?? 0
  await uploadPicture(server, hollowPng(20_000, 10_001), 'image/png')
  const whole = await noise(400).png().toBuffer()
  const damaged = await uploadPicture(server, whole.subarray(0, whole.length / 2), 'image/png')
  await until('it is tried', async () => (await failures()) === 1)
  await expectProblem(await requestThumb(server, damaged.id), 404, 'variant-unavailable')
  expect(await failures()).toBe(1)
  expect(await thumbhashOf(server, damaged.id)).toBeNull()
})
