import { readdirSync, readFileSync, readlinkSync, truncateSync } from 'node:fs'
import { connect } from 'node:net'
import { basename, join } from 'node:path'
import { finished } from 'node:stream/promises'
import { setTimeout } from 'node:timers/promises'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { openConnection } from '../harness/connection.ts'
import { whileStopped } from '../harness/processes.ts'
import { startServer, type TestServer } from '../harness/server.ts'
import { until } from '../harness/until.ts'
import { upload } from '../harness/upload.ts'

const size = 64_000_000
let server: TestServer
let path: string
beforeAll(async () => {
  server = await startServer({ MEDIABUCKET_IDLE_TIMEOUT: '4s' })
  path = new URL((await upload(server, new Uint8Array(size), { name: 'large.bin' })).url).pathname
})
afterAll(() => server[Symbol.asyncDispose]())

const request = () => `GET ${path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`

/** Resident memory of the server, in bytes. */
const memory = () =>
  Number(/VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${server.process.pid}/status`, 'utf8'))?.[1]) * 1024

/** The number of file descriptors of blobs in the server. */
const openBlobs = () =>
  readdirSync(`/proc/${server.process.pid}/fd`).filter((fd) => {
    try {
      return readlinkSync(`/proc/${server.process.pid}/fd/${fd}`).includes('/blobs/')
    } catch {
      return false
    }
  }).length

const abortedDownloads = () =>
  server.log().filter((line) => line.msg === 'aborted' && line['path'] === path && line['status'] === 200)

test('O4, B1 clients that stop reading are disconnected when idle, and use little memory', async () => {
  const before = memory()
  const readers = await Promise.all(Array.from({ length: 20 }, () => openConnection(server.url)))
  for (const reader of readers) {
    reader.pause()
    reader.send(request())
  }
  await until('all downloads run', () => openBlobs() === readers.length)
  let peak = 0
  await until('all are disconnected', () => {
    peak = Math.max(peak, memory())
    return abortedDownloads().length === readers.length
  })
  // The requested bytes are 1280 MB.
  expect(peak - before).toBeLessThan(100_000_000)
  await until('all files are closed', () => openBlobs() === 0)
  for (const reader of readers) {
    reader.resume()
    await reader.closed
    expect(reader.received().length).toBeLessThan(size)
  }
  expect((await fetch(`${server.url}/healthz`)).status).toBe(200)
})

test('O4, B1 a slow reader is not disconnected while it reads', async () => {
  const { hostname, port } = new URL(server.url)
  const socket = connect(Number(port), hostname, () => socket.write(request()))
  let received = 0
  let quota = 0
  socket.on('data', (chunk) => {
    received += chunk.length
    quota -= chunk.length
    if (quota <= 0) socket.pause()
  })
  const startedAt = performance.now()
  const ended = finished(socket, { writable: false })
  // Two megabytes every 80 ms: the download takes several idle timeouts, and no pause is as long as one.
  const pace = setInterval(() => {
    quota = 2_000_000
    socket.resume()
  }, 80)
  await ended
  clearInterval(pace)
  expect(received).toBeGreaterThan(size)
  expect(performance.now() - startedAt).toBeGreaterThan(2_000)
})

test('O4, N6 a download continues after a time in which the service did not run', async () => {
  using reader = await openConnection(server.url)
  reader.pause()
  reader.send(request())
  await until('the download runs', () => openBlobs() === 1)
  // The service measures each second how fast the client reads.
  await setTimeout(2_000)
  await whileStopped(server, async () => {
    reader.resume()
    await setTimeout(5_000)
  })
  await reader.closed
  expect(reader.received().length).toBeGreaterThan(size)
})

test('B1 aborted downloads leave no file open', async () => {
  for (let i = 0; i < 50; i += 1) {
    using reader = await openConnection(server.url)
    reader.send(request())
    await until('the response begins', () => reader.received().startsWith('HTTP/1.1 200'))
  }
  await until('all files are closed', () => openBlobs() === 0)
  expect(server.log().filter(({ level }) => Number(level) >= 50)).toEqual([])
})

test('B9 a file that is truncated while it is read aborts its response', async () => {
  const reader = await openConnection(server.url)
  reader.pause()
  reader.send(request())
  await until('the download runs', () => openBlobs() === 1)
  const id = basename(path, '.bin')
  truncateSync(join(server.data, 'blobs', id.slice(0, 2), id), size / 2)
  reader.resume()
  await reader.closed
  expect(reader.received()).toContain(`content-length: ${size}`)
  expect(reader.received().length).toBeLessThan(size)
  await until('it is logged', () => server.log().some(({ msg }) => msg === 'a response was aborted'))
  await until('the file is closed', () => openBlobs() === 0)
})
