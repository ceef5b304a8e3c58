import { once } from 'node:events'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { withFailpoints } from '../faults/preload.ts'
import { readReached } from '../faults/steps.ts'
import { type Connection, openConnection } from '../harness/connection.ts'
import { temporaryDirectory } from '../harness/directory.ts'
import { startServer, type TestServer } from '../harness/server.ts'
import { until } from '../harness/until.ts'
import { arriving, upload } from '../harness/upload.ts'
import { readItem, readPage } from '../harness/wire.ts'

let server: TestServer
beforeEach(async () => {
  server = await startServer({ MEDIABUCKET_SHUTDOWN_TIMEOUT: '60s' })
})
afterEach(() => server[Symbol.asyncDispose]())

/** More than the server holds in memory, so that it has a temporary file. */
const half = 'half'.repeat(25_000)

/** Sends an upload except its last bytes, and resolves when the server is receiving it. */
async function beginUpload(connection: Connection, rest: string, to = server): Promise<void> {
  const length = half.length + rest.length
  connection.send(
    `POST /api/media HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${to.token}\r\nContent-Length: ${length}\r\n\r\n${half}`,
  )
  await until('the upload arrives', async () => (await arriving(to)).length > 0)
}

/** Sends the signal and resolves when the server has started to stop; `code` resolves with its exit code. */
async function signal(name: 'SIGTERM' | 'SIGINT', to = server) {
  const exited = once(to.process, 'exit')
  to.process.kill(name)
  await until('it stops', () => to.log().some((line) => line.msg === 'stopping' && line['signal'] === name))
  return { code: exited.then(([code]) => code) }
}

test.each(['SIGTERM', 'SIGINT'] as const)(
  'O5 on %s an upload in progress completes, and new connections are refused',
  async (name) => {
    using connection = await openConnection(server.url)
    await beginUpload(connection, 'whole')
    const exit = await signal(name)
    await until('connections are refused', () =>
      openConnection(server.url).then(
        (other) => other[Symbol.dispose](),
        () => true,
      ),
    )
    connection.send('whole')
    await connection.closed
    expect(connection.received()).toMatch(/^HTTP\/1\.1 201 /)
    expect(await exit.code).toBe(0)

    await using next = await startServer({}, server.data)
    const page = await readPage(
      await next.request('/api/media', { headers: { authorization: `Bearer ${server.token}` } }),
    )
    expect(page.total).toBe(1)
    expect(await (await fetch(`${next.url}${new URL(page.data[0] ?? '').pathname}`)).text()).toBe(
      `${half}whole`,
    )
  },
)

test('O1, O5 while stopping, requests on open connections are answered, and the server is not ready', async () => {
  using connection = await openConnection(server.url)
  await beginUpload(connection, 'whole')
  using other = await openConnection(server.url)
  other.send('GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n')
  await until('the response', () => other.received().includes('"ok"'))
  other.send('GET /readyz HTTP/1.1\r\n')
  const exit = await signal('SIGTERM')
  other.send('Host: x\r\n\r\n')
  await other.closed
  connection.send('whole')
  await connection.closed
  expect(connection.received()).toMatch(/^HTTP\/1\.1 201 /)
  const [, ready] = other.received().split(/(?=HTTP\/1\.1 )/)
  expect(ready).toMatch(/^HTTP\/1\.1 503 [\s\S]*retry-after: \d+[\s\S]*"code":"shutting-down"/i)
  expect(await exit.code).toBe(0)
})

test('O5 an upload that does not complete is aborted at the deadline and leaves no file', async () => {
  await using impatient = await startServer({ MEDIABUCKET_SHUTDOWN_TIMEOUT: '2s' })
  using connection = await openConnection(impatient.url)
  await beginUpload(connection, 'never sent', impatient)
  const startedAt = performance.now()
  const { code } = await signal('SIGTERM', impatient)
  expect(await code).toBe(0)
  const spent = performance.now() - startedAt
  expect(spent).toBeGreaterThan(1_500)
  expect(spent).toBeLessThan(60_000)
  expect(connection.received()).not.toMatch(/^HTTP\/1\.1 2/)
  await using next = await startServer({}, impatient.data)
  expect(await arriving(next)).toEqual([])
  const headers = { authorization: `Bearer ${impatient.token}` }
  expect((await readPage(await next.request('/api/media', { headers }))).total).toBe(0)
})

test('O5 a download in progress completes', async () => {
  const size = 30_000_000
  const { url } = await upload(server, new Uint8Array(size), { name: 'a.bin' })
  using connection = await openConnection(server.url)
  connection.send(`GET ${new URL(url).pathname} HTTP/1.1\r\nHost: x\r\n\r\n`)
  await until('the response begins', () => connection.received() !== '')
  connection.pause()
  const exit = await signal('SIGTERM')
  connection.resume()
  await connection.closed
  expect(connection.received().split('\r\n\r\n', 2)[1]?.length).toBe(size)
  expect(await exit.code).toBe(0)
})

test('O5 idle and unused connections do not delay the stop', async () => {
  await using patient = await startServer({ MEDIABUCKET_SHUTDOWN_TIMEOUT: '10m' })
  using unused = await openConnection(patient.url)
  using used = await openConnection(patient.url)
  used.send('GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n')
  await until('it is answered', () => used.received().includes('"ok"'))
  // It would end after this test's limit of time.
  expect(await patient.stop()).toBe(0)
  await Promise.all([unused.closed, used.closed])
})

test('O5, U2 after kill -9 during an upload the next start removes its files', async () => {
  const kept = await upload(server, 'kept')
  using connection = await openConnection(server.url)
  await beginUpload(connection, 'never sent')
  await server.kill()
  expect((await arriving(server)).length).toBe(1)
  await using next = await startServer({}, server.data)
  expect(await arriving(next)).toEqual([])
  expect(next.log()).toContainEqual(expect.objectContaining({ temporary: 1 }))
  const headers = { authorization: `Bearer ${server.token}` }
  expect((await readPage(await next.request('/api/media', { headers }))).total).toBe(1)
  expect(await (await fetch(`${next.url}${new URL(kept.url).pathname}`)).text()).toBe('kept')
})

test('O5, U2 on SIGTERM a small file that is being committed is stored and acknowledged', async () => {
  await using place = await temporaryDirectory()
  const holdUntil = join(place.path, 'go-on')
  await using held = await startServer(
    withFailpoints({ step: 'before the item is committed', nth: 1, action: { holdUntil } }),
  )
  const response = held.request('/api/media', { method: 'POST', body: 'small' })
  await until('it is held', () => readReached(held.data).length > 0)
  const stopped = held.stop()
  await until('it stops', () => held.log().some(({ msg }) => msg === 'stopping'))
  await writeFile(holdUntil, '')
  const { url } = await readItem(await response)
  expect(await stopped).toBe(0)
  await using next = await startServer({}, held.data)
  expect(await (await fetch(`${next.url}${new URL(url).pathname}`)).text()).toBe('small')
})
