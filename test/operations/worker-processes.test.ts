import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { openConnection } from '../harness/connection.ts'
import { isRunning } from '../harness/processes.ts'
import { startServer, type TestServer } from '../harness/server.ts'
import { until } from '../harness/until.ts'
import { fsck } from '../harness/upkeep.ts'
import { arriving } from '../harness/upload.ts'
import { connectToWorkers, listeningWorkers, type WorkerConnection, workersOf } from '../harness/workers.ts'

const settings = { MEDIABUCKET_WORKERS: '2' }

async function connected(server: TestServer): Promise<[WorkerConnection, WorkerConnection]> {
  const [one, other] = await connectToWorkers(server)
  if (!one || !other) throw new Error('there are no two workers')
  return [one, other]
}

const exited = (server: TestServer) =>
  until('the end of the service', () => server.process.exitCode !== null && { code: server.process.exitCode })

test('O5 SIGTERM drains all workers: requests in progress are answered, and all processes end', async () => {
  await using server = await startServer(settings)
  const connections = await connected(server)
  const responses = connections.map(({ socket }) => {
    let received = ''
    socket.on('data', (bytes) => {
      received += bytes
    })
    socket.write(
      `POST /api/media HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${server.token}\r\nContent-Length: 100002\r\n\r\n`,
    )
    socket.write(Buffer.alloc(100_000, 1))
    return () => received
  })
  const pids = workersOf(server)
  const [, other] = connections
  await until('both uploads', async () => {
    const active = /^mediabucket_active_uploads (\d+)$/m.exec(
      await (await fetch(`${server.url}/metrics`)).text(),
    )
    return active?.[1] === '2'
  })
  const stopped = server.stop()
  await until('the stop', () => server.log().some(({ msg }) => msg === 'stopping'))
  for (const { socket } of connections) socket.write('zz')
  expect(await stopped).toBe(0)
  expect(responses.map((received) => received().split('\r\n')[0])).toEqual([
    'HTTP/1.1 201 Created',
    'HTTP/1.1 201 Created',
  ])
  expect(other.pid).toBe(pids[1])
  expect(pids.filter(isRunning)).toEqual([])
  expect(server.log().filter(({ level }) => Number(level) >= 40)).toEqual([])
})

test('O5 a request that does not end keeps no worker beyond the shutdown timeout', async () => {
  await using server = await startServer({ ...settings, MEDIABUCKET_SHUTDOWN_TIMEOUT: '500ms' })
  using slow = await openConnection(server.url)
  slow.send(
    `POST /api/media HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${server.token}\r\nContent-Length: 9\r\n\r\n1`,
  )
  const pids = workersOf(server)
  expect(await server.stop()).toBe(0)
  expect(pids.filter(isRunning)).toEqual([])
})

test('O6, O11 workers whose parent was killed end, and the data can be served again', async () => {
  await using first = await startServer(settings)
  const [one, other] = await connected(first)
  expect((await one.request('/api/media', { method: 'POST', body: 'stored' })).status).toBe(201)
  const pids = [one.pid, other.pid]
  await first.kill()
  await using second = await startServer(settings, first.data)
  expect(pids.filter(isRunning)).toEqual([])
  const headers = { authorization: `Bearer ${first.token}` }
  const { total } = (await (await second.request('/api/media', { headers })).json()) as { total: number }
  expect(total).toBe(1)
  await second.stop()
  expect((await fsck(second.data)).code).toBe(0)
})

test('O6, O11 no service starts before the workers of a killed one have ended', async () => {
  await using first = await startServer(settings)
  const [pid = 0] = workersOf(first)
  process.kill(pid, 'SIGSTOP')
  await first.kill()
  // It may still write.
  await expect(startServer(settings, first.data)).rejects.toThrow(/is already served by another/)
  process.kill(pid, 'SIGCONT')
  await using second = await startServer(settings, first.data)
  expect(isRunning(pid)).toBe(false)
  expect((await fetch(`${second.url}/readyz`)).status).toBe(200)
})

test('O11 a worker that ends is replaced; when workers end at once again and again, the service ends with exit code 1', async () => {
  await using server = await startServer(settings)
  const killed = new Set<number>()
  await until('the end of the service', () => {
    if (server.process.exitCode !== null) return true
    for (const pid of workersOf(server))
      if (!killed.has(pid)) {
        killed.add(pid)
        process.kill(pid, 'SIGKILL')
      }
    return false
  })
  expect((await exited(server)).code).toBe(1)
  const ends = server.log().filter(({ msg }) => msg === 'a worker ended; another one is started')
  expect(ends.length).toBeGreaterThanOrEqual(5)
  expect(server.log().some(({ msg }) => /^\d+ workers ended at once after their start/.test(msg))).toBe(true)
})

test('O11, W2 requests that one worker accepts count against the rate limits of the others', async () => {
  const limit = 300
  await using server = await startServer({ ...settings, MEDIABUCKET_TOKEN_RATE: `${limit}/1h` })
  const [one, other] = await connected(server)
  for (let request = 0; request < limit; request += 1)
    expect((await one.request('/api/bucket')).status).toBe(200)
  let accepted = 0
  await until('429 from the other worker', async () => {
    if ((await other.request('/api/bucket')).status === 429) return true
    accepted += 1
    return false
  })
  expect(accepted).toBeLessThan(limit / 2)
})

test('O11, N2, N3 the connections of all workers count against the limits, and those of a killed worker no longer', async () => {
  await using server = await startServer({ ...settings, MEDIABUCKET_MAX_CONNECTIONS_PER_ADDRESS: '3' })
  const [one, other] = await connected(server)
  // An idle connection would be closed to make room for another one.
  const uploadHead = `POST /api/media HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${server.token}\r\nContent-Length: 9\r\n\r\n`
  for (const { socket } of [one, other]) socket.write(uploadHead)
  const connect = async () => {
    const connection = await openConnection(server.url)
    connection.send('GET /problems/internal HTTP/1.1\r\nHost: x\r\n\r\n')
    await until('a response', () => connection.received().includes('\r\n\r\n'))
    return { connection, status: connection.received().split(' ')[1] }
  }
  const status = async () => {
    const { connection, status } = await connect()
    connection[Symbol.dispose]()
    return status
  }
  using _held = await until('a third connection', async () => {
    const { connection, status } = await connect()
    if (status === '200') {
      connection.send(uploadHead)
      return connection
    }
    connection[Symbol.dispose]()
    return null
  })
  await until('the limit', async () => (await status()) === '503')
  one.socket.on('error', () => undefined)
  process.kill(one.pid, 'SIGKILL')
  await listeningWorkers(server, 2)
  await until('room', async () => (await status()) === '200')
  expect(other.socket.destroyed).toBe(false)
})

describe('on one service', () => {
  let server: TestServer
  beforeAll(async () => {
    server = await startServer(settings)
  })
  afterAll(async () => {
    expect(await server.stop()).toBe(0)
    await server[Symbol.asyncDispose]()
  })

  test('O9 SIGHUP and signals to a worker end nothing', async () => {
    const pids = await listeningWorkers(server, 2)
    server.process.kill('SIGHUP')
    for (const pid of pids)
      for (const signal of ['SIGHUP', 'SIGTERM', 'SIGINT'] as const) process.kill(pid, signal)
    await until('the report', () => server.log().some(({ msg }) => msg === 'read the settings again'))
    expect((await fetch(`${server.url}/readyz`)).status).toBe(200)
    expect(await listeningWorkers(server, 2)).toEqual(pids)
  })

  test('O11 the temporary files of a killed worker are removed, and those of the other stay', async () => {
    const connections = await connected(server)
    for (const { socket } of connections) {
      socket.on('error', () => undefined)
      socket.write(
        `POST /api/media HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${server.token}\r\nContent-Length: 900000\r\n\r\n`,
      )
      socket.write(Buffer.alloc(500_000, 1))
    }
    await until('two temporary files', async () => (await arriving(server)).length === 2)
    process.kill(connections[0].pid, 'SIGKILL')
    await until('one temporary file', async () => (await arriving(server)).length === 1)
    await listeningWorkers(server, 2)
    connections[1].socket.write(Buffer.alloc(400_000, 1))
    await until('the item', async () => {
      const page = (await (await server.request('/api/media')).json()) as { total: number }
      return page.total === 1
    })
  })

  test('O11 an address in use is reported as with one process', async () => {
    const { port } = new URL(server.url)
    await expect(startServer({ ...settings, MEDIABUCKET_PORT: port })).rejects.toThrow(
      new RegExp(`exited with 1: mediabucket: the address 127.0.0.1:${port} is already in use`),
    )
  })
})
