import { expect, test } from 'vitest'
import { openConnection } from '../harness/connection.ts'
import { flood } from '../harness/flood.ts'
import { expectProblem } from '../harness/problem.ts'
import { responseOf } from '../harness/raw-http.ts'
import { forgetPeak, memory } from '../harness/resources.ts'
import { startServer } from '../harness/server.ts'
import { until } from '../harness/until.ts'
import { upload } from '../harness/upload.ts'

const megabyte = 1_000_000

test('N6 many clients that read nothing use a limited amount of memory, and others are served', async () => {
  await using server = await startServer({ MEDIABUCKET_LOG_LEVEL: 'error' })
  const { url } = await upload(server, new Uint8Array(20 * megabyte), { name: 'large.bin' })
  const path = new URL(url).pathname
  // Starts threads that open files, whose memory is not that of the readers.
  await Promise.all(Array.from({ length: 8 }, async () => (await fetch(url)).arrayBuffer()))
  await forgetPeak(server)
  const before = (await memory(server)).now
  const readers = await Promise.all(Array.from({ length: 400 }, () => openConnection(server.url)))
  for (const reader of readers) {
    reader.pause()
    reader.send(`GET ${path} HTTP/1.1\r\nHost: x\r\n\r\n`)
  }
  const open = async () => {
    const text = await (await fetch(`${server.url}/metrics`)).text()
    return Number(/^mediabucket_connections_open (\d+)$/m.exec(text)?.[1])
  }
  await until('all are connected', async () => (await open()) >= readers.length)
  const whole = await fetch(url)
  expect((await whole.arrayBuffer()).byteLength).toBe(20 * megabyte)
  // 64 MiB of blocks, and for each reader its connection and two blocks of 16 kB: 135 to 142 MB, and 15 MB for each thread that starts late.
  // Without a limit of the blocks it is 250 MB.
  expect((await memory(server)).peak - before).toBeLessThan(200 * megabyte)
  for (const reader of readers) reader[Symbol.dispose]()
})

test('N5, P1 a body of 100 MB for an operation without a body is refused with 413, and uses no memory', async () => {
  await using server = await startServer()
  const authorization = `Authorization: Bearer ${server.token}`
  await forgetPeak(server)
  const before = (await memory(server)).now
  for (const [nth, line] of [
    'GET /api/media',
    'GET /healthz',
    'GET /openapi.json',
    'GET /media/x',
    'DELETE /api/media/x',
    'GET /api/token',
    'DELETE /api/uploads/x',
  ].entries()) {
    // If the others were kept, all together would be too large as well.
    const total = nth === 0 ? 100 * megabyte : 20 * megabyte
    for (const chunked of [false, true]) {
      const framing = chunked ? 'Transfer-Encoding: chunked' : `Content-Length: ${100 * megabyte}`
      const head = `${line} HTTP/1.1\r\nHost: x\r\n${authorization}\r\nContent-Type: application/json\r\n${framing}\r\n\r\n`
      const response = await flood(server.url, head, { total, chunked })
      await expectProblem(responseOf(response), 413, 'body-too-large')
    }
  }
  expect((await memory(server)).peak - before).toBeLessThan(150 * megabyte)
})

test('N5 a small body on a GET is ignored, and the connection stays usable', async () => {
  await using server = await startServer()
  using connection = await openConnection(server.url)
  const responseCount = () => connection.received().match(/HTTP\/1\.1 200/g)?.length ?? 0
  const body = 'x'.repeat(65_536)
  connection.send(`GET /healthz HTTP/1.1\r\nHost: x\r\nContent-Length: ${body.length}\r\n\r\n${body}`)
  await until('a response', () => responseCount() === 1)
  connection.send('GET /healthz HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n')
  await until('the next', () => responseCount() === 2)
})

test('O2 the metrics are rendered at most once a second', async () => {
  await using server = await startServer()
  const startedAt = performance.now()
  const texts = new Set<string>()
  for (let round = 0; round < 20; round += 1) {
    const scrapes = Array.from({ length: 10 }, async () => (await fetch(`${server.url}/metrics`)).text())
    for (const text of await Promise.all(scrapes)) texts.add(text)
  }
  expect(texts.size).toBeLessThanOrEqual(Math.floor((performance.now() - startedAt) / 1_000) + 1)
})
