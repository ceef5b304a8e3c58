import { readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { runHere } from '../harness/commands.ts'
import { openConnection } from '../harness/connection.ts'
import { expectProblem } from '../harness/problem.ts'
import { seed } from '../harness/seed.ts'
import { startServer, type TestServer } from '../harness/server.ts'
import { makeToken } from '../harness/token.ts'
import { until } from '../harness/until.ts'
import { upload } from '../harness/upload.ts'
import { parseItem, readItems } from '../harness/wire.ts'

let server: TestServer
/** Of a bucket with 20,000 items, whose lines have 8 MB. */
let large: { readonly authorization: string }
beforeAll(async () => {
  // Streams that no test reads stay open until a busy machine has sent the next requests.
  server = await startServer({ MEDIABUCKET_IDLE_TIMEOUT: '10s' })
  const { token } = await seed(server, '--items', '20000', '--bucket', 'large')
  large = { authorization: `Bearer ${token}` }
})
afterAll(() => server[Symbol.asyncDispose]())

const accept = 'application/x-ndjson'
const stream = (query: string, headers: Record<string, string>, method = 'GET') =>
  server.request(`/api/items${query}`, { method, headers: { accept, ...headers } })
const linesOf = async (response: Response) => (await response.text()).split('\n').slice(0, -1).map(parseItem)

test('K10 the lines are all media objects, without limit, ETag and Link', async () => {
  const response = await stream('?limit=3', large)
  expect(response.headers.get('content-type')).toBe(accept)
  expect(response.headers.get('cache-control')).toBe('private, no-cache')
  expect(response.headers.get('vary')).toBe('Authorization, Mediabucket-Bucket, Accept, Accept-Encoding')
  expect([response.headers.get('etag'), response.headers.get('link')]).toEqual([null, null])
  const lines = await linesOf(response)
  expect(new Set(lines.map(({ id }) => id)).size).toBe(20_000)
  const { data } = await readItems(await server.request('/api/items?limit=500', { headers: large }))
  expect(lines.slice(0, 500)).toEqual(data)
})

test('K10 order, filters and a cursor apply to the lines', async () => {
  const first = await readItems(
    await server.request('/api/items?order=newest&kind=audio&limit=300', { headers: large }),
  )
  const query = `?order=newest&kind=audio&after=${first.next_cursor}`
  const rest = await linesOf(await stream(query, large))
  expect(rest).toHaveLength(2_000 - 300)
  const all = await linesOf(await stream('?order=newest&kind=audio', large))
  expect(all).toEqual([...first.data, ...rest])
})

test('K10 an empty bucket has no lines; refusals are problems; HEAD has no body', async () => {
  const { authorization } = await makeToken(server, '--bucket', 'empty')
  expect(await (await stream('', { authorization })).text()).toBe('')
  await expectProblem(await stream('?after=x', large), 400, 'cursor-malformed')
  await expectProblem(await stream('?kind=x', large), 400, 'parameter-malformed')
  for (const [wanted, type] of [
    ['application/json;q=0.5, application/x-ndjson', accept],
    ['application/json, application/x-ndjson;q=0.1', 'application/json; charset=utf-8'],
  ] as const) {
    const response = await stream('', { authorization, accept: wanted })
    expect(response.headers.get('content-type')).toBe(type)
  }
  const head = await stream('', large, 'HEAD')
  expect([head.status, head.headers.get('content-type'), await head.text()]).toEqual([200, accept, ''])
})

test('K10 items that are uploaded during the stream follow at its end', async () => {
  const { authorization } = await makeToken(server, '--bucket', 'large')
  const response = await stream('', { authorization })
  const added = await upload(server, 'during the stream', { authorization })
  const lines = await linesOf(response)
  expect(lines.length).toBeGreaterThanOrEqual(20_000)
  if (lines.length > 20_000) expect(lines.at(-1)).toEqual(added)
})

test('K10, A7 a token that is revoked during the stream gets no further items', async () => {
  const { id, authorization } = await makeToken(server, '--bucket', 'large')
  // With signed URLs, which only a private bucket has, the lines are longer than the buffers of the connection.
  await runHere(server.data, 'bucket set', 'large', '--private', 'on')
  const response = await stream('?urls=signed', { authorization })
  await runHere(server.data, 'token revoke', id)
  await expect(response.text()).rejects.toThrow('terminated')
})

test('K10 a token has 16 streams at a time; another one is refused until one of them ends', async () => {
  const { authorization } = await makeToken(server, '--bucket', 'large')
  const streams = await Promise.all(Array.from({ length: 16 }, () => stream('', { authorization })))
  expect(streams.map(({ status }) => status)).toEqual(streams.map(() => 200))
  const refused = await stream('', { authorization })
  expect(refused.headers.get('retry-after')).toBe('2')
  await expectProblem(refused, 429, 'streams-too-many')
  // Lists and streams of other tokens are not limited.
  expect((await server.request('/api/items', { headers: { authorization } })).status).toBe(200)
  expect((await stream('', large)).status).toBe(200)
  await streams[0]?.body?.cancel()
  await until('the end of a stream is counted', async () => {
    const next = await stream('', { authorization })
    await next.body?.cancel()
    return next.status === 200
  })
})

test.skipIf(process.platform !== 'linux')(
  'K10 clients that stop reading use little memory, and are disconnected when idle',
  async () => {
    const memory = () =>
      Number(/VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${server.process.pid}/status`, 'utf8'))?.[1]) * 1024
    const request = `GET /api/items HTTP/1.1\r\nHost: h\r\nAccept: ${accept}\r\nAuthorization: ${large.authorization}\r\n\r\n`
    const [before, sockets] = [memory(), countSockets(server.process.pid)]
    const open = async () => {
      // A connection that sends nothing is closed when idle too, so the request follows at once.
      const reader = await openConnection(server.url)
      reader.pause()
      // The buffers of the system may hold the whole response to the first request.
      reader.send(request.repeat(3))
    }
    await Promise.all(Array.from({ length: 20 }, open))
    let most = 0
    const isAborted = () => server.log().some(({ msg, path }) => msg === 'aborted' && path === '/api/items')
    await until('all are cut off', () => {
      most = Math.max(most, memory())
      return isAborted() && countSockets(server.process.pid) <= sockets
    })
    // The requested lines have 480 MB.
    expect(most - before).toBeLessThan(120_000_000)
    expect((await fetch(`${server.url}/healthz`)).status).toBe(200)
  },
)

/** The open sockets of a process. */
function countSockets(pid = 0): number {
  const links = readdirSync(`/proc/${pid}/fd`).map((name) => {
    try {
      return readlinkSync(`/proc/${pid}/fd/${name}`)
    } catch {
      // It was closed in the meantime.
      return ''
    }
  })
  return links.filter((link) => link.startsWith('socket:')).length
}
