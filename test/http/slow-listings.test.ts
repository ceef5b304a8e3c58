import { readFileSync } from 'node:fs'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { openConnection } from '../harness/connection.ts'
import { seed } from '../harness/seed.ts'
import { startServer, type TestServer } from '../harness/server.ts'
import { until } from '../harness/until.ts'

let server: TestServer
let request: string
beforeAll(async () => {
  // Long URLs, so that a page is larger than the buffers of the system.
  const baseUrl = `http://h/${'x'.repeat(1_000)}`
  server = await startServer({ MEDIABUCKET_IDLE_TIMEOUT: '3s', MEDIABUCKET_BASE_URL: baseUrl })
  const { token } = await seed(server, '--items', '100000', '--bucket', 'large')
  request = `GET /api/media?page=7 HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer ${token}\r\n\r\n`
})
afterAll(() => server[Symbol.asyncDispose]())

const memory = () =>
  Number(/VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${server.process.pid}/status`, 'utf8'))?.[1]) * 1024

test('O4, L7 clients that stop reading large pages use little memory and are disconnected when idle', async () => {
  const warm = await openConnection(server.url)
  warm.send(request.replace('Host', 'Connection: close\r\nHost'))
  await warm.closed
  const before = memory()
  const open = async () => {
    // A connection that sends nothing is closed when idle too, so the request follows at once.
    const reader = await openConnection(server.url)
    reader.pause()
    reader.send(request)
  }
  await Promise.all(Array.from({ length: 60 }, open))
  let most = 0
  await until('all are cut off', () => {
    most = Math.max(most, memory())
    return server.log().filter(({ msg, path }) => msg === 'aborted' && path === '/api/media').length >= 60
  })
  // The requested pages have 640 MB.
  expect(most - before).toBeLessThan(60_000_000)
  expect((await fetch(`${server.url}/healthz`)).status).toBe(200)
})
