import { createHash, randomBytes } from 'node:crypto'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { runHere } from '../harness/commands.ts'
import { startServer, type TestServer } from '../harness/server.ts'
import { makeToken } from '../harness/token.ts'
import { chunkType } from '../harness/tus.ts'
import { until } from '../harness/until.ts'
import {
  connectToWorker,
  connectToWorkers,
  listeningWorkers,
  type WorkerConnection,
  workersOf,
} from '../harness/workers.ts'

const settings = { MEDIABUCKET_WORKERS: '2' }
const tus = { 'tus-resumable': '1.0.0' }

let server: TestServer
let one: WorkerConnection
let other: WorkerConnection

beforeAll(async () => {
  server = await startServer({ ...settings, MEDIABUCKET_ADDRESS_RATE: 'off' })
  const [first, second] = await connectToWorkers(server)
  if (!first || !second) throw new Error('there are no two workers')
  one = first
  other = second
})
afterAll(() => server[Symbol.asyncDispose]())

const post = (to: WorkerConnection, body: string | Uint8Array, headers: Record<string, string> = {}) =>
  to.request('/api/media', { method: 'POST', body, headers })

const list = async (from: WorkerConnection, authorization: string, etag = '""') =>
  from.request('/api/media', { headers: { authorization, 'if-none-match': etag } })

const page = (text: string): { data: string[]; total: number } => JSON.parse(text)

async function createUpload(to: WorkerConnection, length: number): Promise<string> {
  const { headers } = await to.request('/api/uploads', {
    method: 'POST',
    headers: { ...tus, 'upload-length': `${length}` },
  })
  return new URL(headers['location'] ?? '').pathname
}

const patch = (to: WorkerConnection, path: string, offset: number, body: Uint8Array) =>
  to.request(path, {
    method: 'PATCH',
    headers: { ...tus, 'content-type': chunkType, 'upload-offset': `${offset}` },
    body,
  })

const head = (to: WorkerConnection, path: string) => to.request(path, { method: 'HEAD', headers: tus })

/** A PATCH whose body does not end. Resolves when the worker has received the first bytes. */
async function stalledPatch(to: WorkerConnection, path: string, length: number, sent: Uint8Array) {
  to.socket.write(
    [
      `PATCH ${path} HTTP/1.1`,
      'Host: x',
      `Authorization: Bearer ${server.token}`,
      'Tus-Resumable: 1.0.0',
      'Upload-Offset: 0',
      `Content-Type: ${chunkType}`,
      `Content-Length: ${length}`,
      '\r\n',
    ].join('\r\n'),
  )
  let received = ''
  to.socket.on('data', (bytes) => {
    received += bytes
  })
  to.socket.write(sent)
  return () => received
}

test('O11 one banner, one token and one service: two workers and no other process handles requests', () => {
  expect(workersOf(server)).toHaveLength(2)
  expect(one.pid).not.toBe(other.pid)
  expect(server.stdout().match(/mbkt_\w+/g)?.length).toBeGreaterThan(0)
  expect(new Set(server.stdout().match(/mbkt_\w+/g)).size).toBe(1)
  expect(server.stdout().match(/is ready at/g)).toHaveLength(1)
  expect(server.log().filter(({ msg }) => msg === 'listening')).toHaveLength(1)
})

test('O11 a change by one worker is in the next listing of the other, with another ETag', async () => {
  const { authorization } = await makeToken(server, '--bucket', 'alternating')
  const workers = [one, other]
  let etag = '""'
  const urls: string[] = []
  for (let round = 0; round < 30; round += 1) {
    const [writer, reader] = round % 2 === 0 ? workers : workers.toReversed()
    if (!writer || !reader) throw new Error('there are no two workers')
    if (round % 5 === 4) {
      const id = urls.shift()?.split('/').at(-1) ?? ''
      const path = `/api/media/${id.split('.')[0]}`
      expect((await writer.request(path, { method: 'DELETE', headers: { authorization } })).status).toBe(204)
    } else {
      const { status, headers } = await post(writer, `file ${round}`, { authorization })
      expect(status).toBe(201)
      urls.push(headers['location'] ?? '')
    }
    const listed = await list(reader, authorization, etag)
    expect(listed.status).toBe(200)
    expect(page(listed.text).total).toBe(urls.length)
    expect(page(listed.text).data.length).toBe(Math.min(10, urls.length))
    expect(listed.headers['etag']).not.toBe(etag)
    etag = listed.headers['etag'] ?? ''
    // The other worker has the same page under the same ETag.
    expect((await list(writer, authorization, etag)).status).toBe(304)
  }
})

test('O11 with uploads through all workers at once, each listing has all acknowledged items, in one order', async () => {
  const { authorization } = await makeToken(server, '--bucket', 'concurrent')
  let acknowledged = 0
  const work = async (pid: number) => {
    using writer = await connectToWorker(server, pid)
    using reader = await connectToWorker(server, pid === one.pid ? other.pid : one.pid)
    for (let round = 0; round < 15; round += 1) {
      expect((await post(writer, `${pid} ${round} ${Math.random()}`, { authorization })).status).toBe(201)
      acknowledged += 1
      const least = acknowledged
      expect(page((await list(reader, authorization)).text).total).toBeGreaterThanOrEqual(least)
    }
  }
  const connected = [one.pid, other.pid]
  for (const pid of connected) await work(pid)
  await Promise.all(
    [one, other].map(async (writer) => {
      for (let round = 0; round < 20; round += 1) {
        expect((await post(writer, `${writer.pid} again ${round}`, { authorization })).status).toBe(201)
        acknowledged += 1
        const least = acknowledged
        expect(page((await list(writer, authorization)).text).total).toBeGreaterThanOrEqual(least)
      }
    }),
  )
  const pages = async (from: WorkerConnection) => {
    const all: string[] = []
    for (let number = 1; number <= acknowledged / 10 + 1; number += 1) {
      const { text } = await from.request(`/api/media?page=${number}`, { headers: { authorization } })
      expect(page(text).total).toBe(acknowledged)
      all.push(...page(text).data)
    }
    return all
  }
  const all = await pages(one)
  expect(new Set(all).size).toBe(acknowledged)
  expect(await pages(other)).toEqual(all)
})

test('O11 a revoked token is refused by every worker', async () => {
  const { authorization, id } = await makeToken(server, '--bucket', 'revoked')
  for (const worker of [one, other]) expect((await list(worker, authorization)).status).toBe(200)
  await runHere(server.data, 'token revoke', id)
  for (const worker of [one, other]) expect((await list(worker, authorization)).status).toBe(401)
})

test('O11, I2 the same Idempotency-Key through both workers at once creates one item', async () => {
  const { authorization } = await makeToken(server, '--bucket', 'keyed')
  const connections = await Promise.all([one, other].map(({ pid }) => pid)).then(async (pids) => {
    const all: WorkerConnection[] = []
    for (const pid of [...pids, ...pids, ...pids]) all.push(await connectToWorker(server, pid))
    return all
  })
  const answers = await Promise.all(
    connections.map((to) => post(to, 'once', { authorization, 'idempotency-key': '"same"' })),
  )
  expect(new Set(answers.map(({ headers }) => headers['location'])).size).toBe(1)
  expect(page((await list(one, authorization)).text).total).toBe(1)
  for (const connection of connections) connection[Symbol.dispose]()
})

test.each([3_000, 300_000])(
  'O11, R3, R4 an upload of %d bytes begun on one worker continues on the other',
  async (length) => {
    const bytes = randomBytes(length)
    const path = await createUpload(one, length)
    const half = Math.floor(length / 2)
    expect((await patch(one, path, 0, bytes.subarray(0, half))).status).toBe(204)
    expect((await head(other, path)).headers['upload-offset']).toBe(`${half}`)
    const last = await patch(other, path, half, bytes.subarray(half))
    expect(last.status).toBe(204)
    expect((await head(one, path)).headers['upload-offset']).toBe(`${length}`)
    const item = new URL(`${last.headers['content-location']}`).pathname
    const { sha256 }: { sha256: string } = JSON.parse((await one.request(item)).text)
    expect(sha256).toBe(createHash('sha256').update(bytes).digest('hex'))
  },
)

test('O11 a writer that stalls on one worker is ended by HEAD on the other, which then continues', async () => {
  using stalled = await connectToWorker(server, one.pid)
  const bytes = randomBytes(100_000)
  const path = await createUpload(other, bytes.length)
  const received = await stalledPatch(stalled, path, bytes.length, bytes.subarray(0, 70_000))
  await until('the first bytes', async () => Number((await head(other, path)).headers['upload-offset']) > 0)
  await until('the end of the stalled request', () => received().startsWith('HTTP/1.1 409'))
  const offset = Number((await head(other, path)).headers['upload-offset'])
  expect(offset).toBe(70_000)
  expect((await patch(other, path, offset, bytes.subarray(offset))).status).toBe(204)
})

test('O11 a writer on one worker is taken over by PATCH on the other', async () => {
  using stalled = await connectToWorker(server, other.pid)
  const path = await createUpload(other, 100_000)
  const received = await stalledPatch(stalled, path, 100_000, randomBytes(70_000))
  // Whether it receives 409 for the offset or 204 depends on when the first request began to write.
  await until('the takeover', async () => {
    await patch(one, path, 0, randomBytes(10))
    return received().startsWith('HTTP/1.1 409')
  })
  expect(Number((await head(one, path)).headers['upload-offset'])).toBeGreaterThan(0)
})

test('O11, O2 /metrics adds the workers up, whichever responds', async () => {
  const value = async (from: WorkerConnection, name: string) => {
    const { text } = await from.request('/metrics')
    return Number(new RegExp(`^mediabucket_${name} (\\S+)$`, 'm').exec(text)?.[1])
  }
  // A text is reused for a second.
  const settled = (from: WorkerConnection, name: string, expected: number) =>
    until(`${name} ${expected}`, async () => (await value(from, name)) === expected)
  const { authorization } = await makeToken(server, '--bucket', 'measured')
  const { total } = page((await list(one, authorization)).text)
  expect(total).toBe(0)
  const before = await value(one, 'uploaded_items_total')
  for (const to of [one, one, other]) expect((await post(to, 'counted', { authorization })).status).toBe(201)
  await settled(one, 'uploaded_items_total', before + 3)
  await settled(other, 'uploaded_items_total', before + 3)
  // What all workers read from the catalog is not added.
  expect(await value(one, 'items')).toBeGreaterThanOrEqual(3)
  expect(await value(one, 'items')).toBe(await value(other, 'items'))
  const { text } = await one.request('/metrics')
  expect(text).toMatch(/^mediabucket_build_info\{[^}]*\} 1$/m)
  expect(text).toMatch(/^process_start_time_seconds \d+$/m)
  const counts = [
    ...text.matchAll(
      /^mediabucket_http_request_duration_seconds_bucket\{le="\+Inf",method="POST",route="\/api\/media",status="201"\} (\d+)$/gm,
    ),
  ]
  expect(counts).toHaveLength(1)
})

test('O11 after a worker is killed, its upload continues on the other, and no count decreases', async () => {
  const victim = await connectToWorker(server, one.pid)
  const counted = async () =>
    Number(/^mediabucket_uploaded_items_total (\S+)$/m.exec((await other.request('/metrics')).text)?.[1])
  expect((await post(victim, 'before the kill')).status).toBe(201)
  const before = await counted()
  const bytes = randomBytes(200_000)
  const path = await createUpload(other, bytes.length)
  await stalledPatch(victim, path, bytes.length, bytes.subarray(0, 100_000))
  victim.socket.on('error', () => undefined)
  process.kill(one.pid, 'SIGKILL')
  await listeningWorkers(server, 2)
  const offset = Number((await head(other, path)).headers['upload-offset'])
  expect(offset).toBeLessThanOrEqual(100_000)
  expect((await patch(other, path, offset, bytes.subarray(offset))).status).toBe(204)
  await until('the metrics of the new worker', async () => (await counted()) >= before)
  const restarted = workersOf(server).find((pid) => pid !== other.pid) ?? 0
  one = await connectToWorker(server, restarted)
  expect((await post(one, 'after the kill')).status).toBe(201)
  await until('the count of both', async () => (await counted()) > before)
})
