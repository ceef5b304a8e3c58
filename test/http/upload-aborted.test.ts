import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Connection, openConnection } from '../harness/connection.ts'
import { filePart, formBytes, formType } from '../harness/form.ts'
import { expectProblem } from '../harness/problem.ts'
import { parseResponse, responseOf, sendRaw } from '../harness/raw-http.ts'
import { countStored, memory, openFiles } from '../harness/resources.ts'
import { startServer, type TestServer } from '../harness/server.ts'
import { until } from '../harness/until.ts'

let server: TestServer
beforeAll(async () => {
  server = await startServer()
})
afterAll(() => server[Symbol.asyncDispose]())

const head = (line: string) =>
  `POST /api/media HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${server.token}\r\n${line}\r\n\r\n`
/** Too large to be held in memory, so that a temporary file shows its arrival. */
const half = Buffer.alloc(240_000, 'x')
const halfForm = formBytes(filePart('first', half), filePart('second', half)).subarray(0, -20)
const smallHalf = Buffer.alloc(20_000, 'x')
const smallHalfForm = formBytes(filePart('first', 'whole'), filePart('second', smallHalf)).subarray(0, -20)

/** Uploads that stop half-way, and the number of temporary files of each. */
const halves: [name: string, temporary: number, start: () => string, bytes: Buffer][] = [
  ['raw', 1, () => head('Content-Length: 800000'), half],
  ['chunked', 1, () => head('Transfer-Encoding: chunked'), Buffer.concat([Buffer.from('c3500\r\n'), half])],
  ['form', 2, () => head(`Content-Type: ${formType}\r\nContent-Length: 800000`), halfForm],
  [
    'chunked form',
    2,
    () => head(`Content-Type: ${formType}\r\nTransfer-Encoding: chunked`),
    Buffer.concat([Buffer.from('c3500\r\n'), halfForm]),
  ],
]

/** Starts `count` uploads, and closes their connections once the server has received the sent bytes. */
async function abort(count: number) {
  const connections: Connection[] = []
  let expected = 0
  for (let i = 0; i < count; i += 1) {
    const [, temporary, start, bytes] = halves[i % halves.length] ?? []
    const connection = await openConnection(server.url)
    connections.push(connection)
    connection.send(start?.() ?? '')
    connection.send(bytes ?? '')
    expected += temporary ?? 0
  }
  await until(`${expected} temporary files`, async () => (await countStored(server)).temporary === expected)
  for (const connection of connections) connection[Symbol.dispose]()
  await until('no temporary files', async () => (await countStored(server)).temporary === 0)
}

test('U10, U2 a thousand aborted uploads leave no files and no items', async () => {
  await abort(100)
  const before = {
    traces: await countStored(server),
    files: await openFiles(server),
    memory: await memory(server),
  }
  for (let batch = 0; batch < 10; batch += 1) await abort(100)
  await until('open files as before', async () => (await openFiles(server)) <= before.files)
  expect(await countStored(server)).toEqual(before.traces)
  // 360 MB were sent. Memory that V8 collects late is up to 80 MB.
  expect((await memory(server)).now - before.memory.now).toBeLessThan(180_000_000)
  expect((await fetch(`${server.url}/healthz`)).status).toBe(200)
})

test('P3 an upload that its client aborts is not logged as an error of the service', () => {
  expect(server.log().filter(({ level }) => Number(level) >= 40)).toEqual([])
})

test.each(halves)(
  'U10 a %s body that ends early is refused with 400, and nothing of it is stored',
  async (_, temporary, start, bytes) => {
    const before = await countStored(server)
    using connection = await openConnection(server.url)
    connection.send(start())
    connection.send(bytes)
    await until('temporary files', async () => (await countStored(server)).temporary === temporary)
    connection.end()
    await connection.closed
    await expectProblem(responseOf(parseResponse(connection.received())), 400, 'upload-incomplete')
    await until('its end', async () => (await countStored(server)).temporary === 0)
    expect(await countStored(server)).toEqual(before)
  },
)

test.each([
  ['ends before its last boundary', halfForm.length, 'upload-incomplete'],
  ['goes on past its Content-Length', 100, 'upload-incomplete'],
])('U10 a form that %s is refused with 400, and nothing of it stays', async (_, length, code) => {
  const before = await countStored(server)
  const lines = `Content-Type: ${formType}\r\nContent-Length: ${length}\r\nConnection: close`
  const response = await sendRaw(server.url, Buffer.concat([Buffer.from(head(lines)), halfForm]))
  await expectProblem(responseOf(response), 400, code)
  await until('its end', async () => (await countStored(server)).temporary === 0)
  expect(await countStored(server)).toEqual(before)
})

test('U10 malformed chunks are refused with 400, and nothing of the upload is stored', async () => {
  const before = await countStored(server)
  using connection = await openConnection(server.url)
  connection.send(`${head('Transfer-Encoding: chunked')}${half.length.toString(16)}\r\n${half}\r\n`)
  await until('a temporary file', async () => (await countStored(server)).temporary === 1)
  connection.send('zz\r\n')
  await connection.closed
  await expectProblem(responseOf(parseResponse(connection.received())), 400, 'request-malformed')
  await until('its end', async () => (await countStored(server)).temporary === 0)
  expect(await countStored(server)).toEqual(before)
})

test.each([
  ['raw body', 'Content-Length: 40000', smallHalf],
  ['form', `Content-Type: ${formType}\r\nContent-Length: 40000`, smallHalfForm],
])('U10 a small %s that ends early is refused with 400, and nothing of it stays', async (_, lines, bytes) => {
  const before = await countStored(server)
  using connection = await openConnection(server.url)
  connection.send(head(lines))
  connection.send(bytes)
  connection.end()
  await connection.closed
  await expectProblem(responseOf(parseResponse(connection.received())), 400, 'upload-incomplete')
  expect(await countStored(server)).toEqual(before)
})
