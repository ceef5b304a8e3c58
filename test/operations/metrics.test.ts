import { afterAll, beforeAll, expect, test } from 'vitest'
import { openConnection } from '../harness/connection.ts'
import { scrape } from '../harness/scrape.ts'
import { startServer, type TestServer } from '../harness/server.ts'
import { itemOf, tusOf } from '../harness/tus.ts'
import { until } from '../harness/until.ts'
import { arriving, upload } from '../harness/upload.ts'

let server: TestServer
beforeAll(async () => {
  server = await startServer()
})
afterAll(() => server[Symbol.asyncDispose]())

const count = (
  { samples }: Awaited<ReturnType<typeof scrape>>,
  method: string,
  route: string,
  status: string,
) =>
  samples.get(
    `mediabucket_http_request_duration_seconds_count{method="${method}",route="${route}",status="${status}"}`,
  ) ?? 0

const counted = async (method: string, route: string, status: string) =>
  count(await scrape(server), method, route, status)

test('O2 metrics are in the text format of Prometheus', async () => {
  const response = await fetch(`${server.url}/metrics`)
  expect(response.headers.get('content-type')).toBe('text/plain; version=0.0.4; charset=utf-8')
  expect(response.headers.get('cache-control')).toBe('no-store')
  const { samples } = await scrape(server)
  expect(samples.get('process_resident_memory_bytes{}')).toBeGreaterThan(1_000_000)
})

test('O2 requests are counted by route, not by path', async () => {
  const { id, url } = await upload(server, 'x')
  await server.request('/api/media?page=1')
  await server.request('/api/media?page=2')
  await fetch(url)
  await fetch(`${server.url}/media/${id}`)
  await fetch(`${server.url}/media/nothing`)
  await fetch(`${server.url}/nowhere`)
  await fetch(`${server.url}/elsewhere`)
  await fetch(`${server.url}/media/%zz`)
  await fetch(`${server.url}/healthz`, { method: 'PUT' })
  const scraped = await until('the last is counted', async () => {
    const fresh = await scrape(server)
    return count(fresh, 'PUT', '/healthz', '405') === 1 && fresh
  })
  expect(count(scraped, 'POST', '/api/media', '201')).toBe(1)
  expect(count(scraped, 'GET', '/api/media', '200')).toBe(2)
  expect(count(scraped, 'GET', '/media/:name', '200')).toBe(2)
  expect(count(scraped, 'GET', '/media/:name', '404')).toBe(1)
  expect(count(scraped, 'GET', 'unknown', '404')).toBe(2)
  expect(count(scraped, 'GET', 'unknown', '400')).toBe(1)
  const names = [...scraped.samples.keys()].join()
  for (const secret of [id, 'nowhere', server.token]) expect(names).not.toContain(secret)
})

test('O2 a request aborted by its client is counted', async () => {
  const route = { method: 'POST', route: '/api/media' }
  using connection = await openConnection(server.url)
  connection.send(
    `POST /api/media HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${server.token}\r\nContent-Length: 100000\r\n\r\nhalf`,
  )
  await until('it arrives', async () => (await arriving(server)).length > 0)
  connection[Symbol.dispose]()
  await until('it is counted', async () => (await counted(route.method, route.route, 'none')) === 1)
})

test('O2 stored and deleted items are counted', async () => {
  const count = async () => {
    const { samples } = await scrape(server)
    return ['uploaded_items', 'uploaded_bytes', 'deleted_items'].map((name) =>
      samples.get(`mediabucket_${name}_total{}`),
    )
  }
  const [items = 0, bytes = 0, deleted = 0] = await count()
  const { id } = await upload(server, 'hello')
  await server.request(`/api/media/${id}`, { method: 'DELETE' })
  expect(await count()).toEqual([items + 1, bytes + 5, deleted + 1])

  // A deleted item is not counted twice, neither by its id nor by the upload that created it.
  const tus = tusOf(server)
  const path = await tus.createWithLength(5)
  const item = await itemOf(server, await tus.sendChunk(path, 0, 'hello'))
  for (const status of [204, 404])
    expect((await server.request(`/api/media/${item.id}`, { method: 'DELETE' })).status).toBe(status)
  expect((await tus.terminate(path)).status).toBe(204)
  expect(await count()).toEqual([items + 2, bytes + 10, deleted + 2])
})
