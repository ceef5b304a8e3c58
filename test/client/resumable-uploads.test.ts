import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createClient, ProblemError, type UploadProgress } from '../../packages/client/src/index.ts'
import { runHere } from '../harness/commands.ts'
import { temporaryDirectory } from '../harness/directory.ts'
import { startLossyProxy } from '../harness/lossy-proxy.ts'
import { startServer, type TestServer } from '../harness/server.ts'
import { makeToken } from '../harness/token.ts'
import { until } from '../harness/until.ts'
import { startWatchedProxy } from '../harness/watched-proxy.ts'
import { caught, urlsOf } from './buckets.ts'
import {
  bytes,
  chunkSize,
  clientsOf,
  expectOneItem,
  file,
  offsets,
  retry,
  sha256,
  startRelocatedServer,
} from './large-file.ts'
import { memoryStore } from './memory-store.ts'

let server: TestServer
beforeAll(async () => {
  server = await startRelocatedServer()
})
afterAll(() => server[Symbol.asyncDispose]())

const bucket = (url?: string) => clientsOf(server, url)

const reserved = async (token: string): Promise<unknown> =>
  (await server.request('/api/bucket', { headers: { authorization: `Bearer ${token}` } })).json()

test('R4 files above the threshold are sent in chunks with name and type; smaller ones in one request', async () => {
  await using proxy = await startWatchedProxy(() => server.url)
  const { client } = await bucket(proxy.url)
  const seen: UploadProgress[] = []
  const media = await client.upload(file, { onProgress: (progress) => seen.push(progress) })
  expect(media).toMatchObject({ filename: 'Größe.bin', size: bytes.length, sha256 })
  expect(offsets(proxy.chunks())).toEqual([0, chunkSize, 2 * chunkSize])
  const sent = seen.map((progress) => progress.sent)
  expect([sent[0], sent.at(-1)]).toEqual([0, bytes.length])
  expect(sent).toEqual([...new Set(sent)].sort((one, other) => one - other))
  expect(sent.length).toBeGreaterThan(100)
  expect(seen.every(({ total }) => total === bytes.length)).toBe(true)
  await expectOneItem(client, media)

  proxy.passed.length = 0
  for (const [size, piecesAbove] of [
    [1_000, 1_000],
    [1_001, 1_000],
    [chunkSize * 2, undefined],
    [5, Infinity],
  ] as const)
    expect((await client.upload(new Uint8Array(size), { piecesAbove })).size).toBe(size)
  await client.upload(file.stream(), { piecesAbove: 0 })
  expect(
    proxy.passed.filter(({ method }) => method !== 'GET').map(({ method, path }) => `${method} ${path}`),
  ).toEqual([
    'POST /api/media',
    'POST /api/uploads',
    expect.stringMatching(/^PATCH \/api\/uploads\/\w+$/),
    'POST /api/media',
    'POST /api/media',
    'POST /api/media',
  ])
})

test('R5 the last chunk is sent, and the item created, only after beforeLastChunk resolves', async () => {
  await using proxy = await startWatchedProxy(() => server.url)
  const { client, direct } = await bucket(proxy.url)
  const turn = Promise.withResolvers<void>()
  let asked = false
  const sending = client.upload(file, {
    beforeLastChunk() {
      asked = true
      return turn.promise
    },
  })
  await until('beforeLastChunk is called', () => asked)
  expect(offsets(proxy.chunks())).toEqual([0, chunkSize])
  expect((await direct.listPage(1)).total).toBe(0)
  turn.resolve()
  await expectOneItem(direct, await sending)
  const failure = new Error('not now')
  await expect(client.upload(file, { beforeLastChunk: () => Promise.reject(failure) })).rejects.toBe(failure)
  expect((await direct.listPage(1)).total).toBe(1)
})

describe('R5 when responses are lost, there is one item', () => {
  test.each<[string, (method: string, nth: number) => boolean]>([
    ['the creation', (method, nth) => method === 'POST' && nth === 1],
    ['the last chunk', (method, nth) => method === 'PATCH' && nth === 3],
    ['every chunk', (method) => method === 'PATCH'],
    ['a chunk, and the HEADs after it', (method, nth) => method !== 'POST' && nth < 3],
    ['the item', (method, nth) => method === 'GET' && nth === 1],
  ])('%s', async (_, loses) => {
    await using proxy = await startLossyProxy(server.url, loses)
    const { client, direct } = await bucket(proxy.url)
    const media = await client.upload(file)
    expect(proxy.lost()).not.toBe(0)
    await expectOneItem(direct, media)
  })
})

test('R6 after a kill and a restart of the server only the missing bytes are sent', async () => {
  await using directory = await temporaryDirectory()
  let first = await startServer({}, directory.path)
  const { token } = first
  await using proxy = await startWatchedProxy(() => first.url)
  const client = createClient({ url: proxy.url, token, retry: { attempts: 1_000, delay: 20, maxDelay: 200 } })
  const reached = proxy.hold(({ offset, bytes }) => offset === chunkSize && bytes > 1_000_000)
  const upload = client.upload(file)
  await reached
  await first.kill()
  first = await startServer({}, directory.path)
  await using _ = first
  await expectOneItem(client, await upload)
  const [, held, ...rest] = proxy.chunks().filter(({ bytes }) => bytes > 0)
  expect(held?.offset).toBe(chunkSize)
  // A chunk with a checksum is stored completely or not at all; chunks are smaller after a failure.
  expect(rest[0]).toMatchObject({ offset: chunkSize, bytes: chunkSize / 2 })
  expect(rest.reduce((sum, one) => sum + one.bytes, 0)).toBe(bytes.length - chunkSize)
})

test('R7 a chunk that arrives damaged is sent again', async () => {
  let damaged = 0
  await using proxy = await startWatchedProxy(
    () => server.url,
    (chunk, { method, offset }) => {
      if (method !== 'PATCH' || offset === 0 || damaged > 0) return chunk
      damaged += 1
      return Buffer.from(chunk.map((byte, index) => (index === 7 ? byte ^ 1 : byte)))
    },
  )
  const { client, direct } = await bucket(proxy.url)
  await expectOneItem(direct, await client.upload(file))
  expect(damaged).toBe(1)
  expect(offsets(proxy.chunks()).slice(0, 3)).toEqual([0, chunkSize, chunkSize])
})

test('R9 an aborted upload without stored state leaves no data', async () => {
  const { client, token } = await bucket()
  const aborter = new AbortController()
  const onProgress = ({ sent }: UploadProgress) =>
    void (sent > chunkSize + 1_000_000 && aborter.abort('enough'))
  expect(await caught(client.upload(file, { signal: aborter.signal, onProgress }))).toBe('enough')
  await until('nothing is reserved', async () => {
    const state = await reserved(token)
    return JSON.stringify(state).includes('"reserved_items":0')
  })
  expect(await reserved(token)).toMatchObject({ items: 0, reserved_bytes: 0 })
})

test('an abort before the first byte creates no upload', async () => {
  const { client, token } = await bucket()
  expect(await caught(client.upload(file, { signal: AbortSignal.abort('enough') }))).toBe('enough')
  expect(await reserved(token)).toMatchObject({ items: 0, reserved_items: 0 })
})

test('what onProgress throws ends the upload', async () => {
  const { client } = await bucket()
  const mistake = new Error('no such element')
  const onProgress = () => {
    throw mistake
  }
  expect(await caught(client.upload(file, { onProgress }))).toBe(mistake)
  expect(await urlsOf(client)).toEqual([])
})

test('Q2, R12 an exceeded quota or limit causes a problem before any byte is sent', async () => {
  await using small = await startServer({ MEDIABUCKET_MAX_FILE_SIZE: `${bytes.length - 1}` })
  await using proxy = await startWatchedProxy(() => small.url)
  const client = createClient({ url: proxy.url, token: small.token, retry })
  const tooLarge = await caught(client.upload(file))
  expect(tooLarge).toBeInstanceOf(ProblemError)
  expect(tooLarge).toMatchObject({ status: 413, problem: { code: 'file-too-large' } })
  await runHere(small.data, 'bucket set', 'default', '--max-bytes', '1000')
  const full = await caught(client.upload(new Uint8Array(bytes.length - 1)))
  expect(full).toBeInstanceOf(ProblemError)
  expect(full).toMatchObject({ status: 507, problem: { code: 'quota-exceeded' } })
  expect(proxy.chunks()).toEqual([])
})

test('A7 a token that is revoked during an upload causes a problem', async () => {
  const { id, token } = await makeToken(server, '--bucket', randomUUID())
  const client = createClient({ url: server.url, token, retry })
  const resume = memoryStore()
  const revoke = async () => void (await runHere(server.data, 'token revoke', id))
  const error = await caught(client.upload(file, { resume: { ...resume, set: revoke } }))
  expect(error).toBeInstanceOf(ProblemError)
  expect(error).toMatchObject({ method: 'PATCH', status: 401 })
})

test('a source with fewer bytes than declared is an error, not a shorter item', async () => {
  const { client } = await bucket()
  const source = Object.defineProperty(new Blob([bytes]), 'size', { value: bytes.length + 1 })
  expect(await caught(client.upload(source))).toBeInstanceOf(TypeError)
  expect(await urlsOf(client)).toEqual([])
})
