import { createHash, randomBytes, randomUUID } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import {
  type Client,
  createClient,
  ProblemError,
  type UploadProgress,
} from '../../packages/client/src/index.ts'
import { runHere } from '../harness/commands.ts'
import { temporaryDirectory } from '../harness/directory.ts'
import { startLossyProxy } from '../harness/lossy-proxy.ts'
import { startServer, type TestServer } from '../harness/server.ts'
import { makeToken } from '../harness/token.ts'
import { tusOf } from '../harness/tus.ts'
import { until } from '../harness/until.ts'
import { type Passed, startWatchedProxy } from '../harness/watched-proxy.ts'
import { caught, newToken, urlsOf } from './buckets.ts'
import { memoryStore } from './memory-store.ts'

let server: TestServer
beforeAll(async () => {
  // Differs from the requested URL, so that a client that follows Location fails.
  server = await startServer({ MEDIABUCKET_BASE_URL: 'http://127.0.0.1:9/box' })
})
afterAll(() => server[Symbol.asyncDispose]())

const retry = { delay: 1 }
const bytes = randomBytes(20_000_000)
const file = new File([bytes], 'Größe.bin', { type: 'application/x-thing', lastModified: 1 })
const sha256 = createHash('sha256').update(bytes).digest('hex')
const chunkSize = 8 * 1024 * 1024

/** A new bucket, requested at this URL. */
async function bucket(url = server.url) {
  const token = await newToken(server, randomUUID())
  return {
    token,
    client: createClient({ url, token, retry }),
    direct: createClient({ url: server.url, token }),
  }
}

async function expectOneItem(client: Client, media: { readonly url: string }) {
  expect(await urlsOf(client)).toEqual([media.url])
  expect(await client.describe(media.url)).toMatchObject({ size: bytes.length, sha256 })
}

const reserved = async (token: string): Promise<unknown> =>
  (await server.request('/api/bucket', { headers: { authorization: `Bearer ${token}` } })).json()

const offsets = (passed: readonly Passed[]) => passed.map(({ offset }) => offset)

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
  const client = createClient({ url: proxy.url, token, retry: { attempts: 50, delay: 20, maxDelay: 200 } })
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

describe('an upload with stored state', () => {
  /** Aborts an upload of the file during its second chunk. */
  async function interrupted(source = file) {
    const proxy = await startWatchedProxy(() => server.url)
    const { token, direct } = await bucket()
    const resume = memoryStore()
    const aborter = new AbortController()
    const reached = proxy.hold(({ offset, bytes }) => offset === chunkSize && bytes > 1_000_000)
    const client = () => createClient({ url: proxy.url, token, retry })
    const upload = caught(client().upload(source, { resume, signal: aborter.signal }))
    await reached
    aborter.abort('enough')
    expect(await upload).toBe('enough')
    expect([...resume.kept.keys()].join()).not.toContain(token)
    proxy.passed.length = 0
    return { proxy, token, direct, resume, client: client() }
  }

  test('R6 is resumed at its offset, reports that, and its state is removed at its end', async () => {
    const { proxy, direct, resume, client } = await interrupted()
    await using _ = proxy
    const seen: UploadProgress[] = []
    const media = await client.upload(file, { resume, onProgress: (progress) => seen.push(progress) })
    expect(seen[0]).toEqual({ sent: chunkSize, total: bytes.length })
    expect(offsets(proxy.chunks())).toEqual([chunkSize, 2 * chunkSize])
    expect(proxy.passed.map(({ method }) => method)).toEqual(['HEAD', 'PATCH', 'PATCH', 'GET'])
    expect(resume.kept.size).toBe(0)
    await expectOneItem(direct, media)
    await client.upload(file, { resume })
    expect(await urlsOf(direct)).toHaveLength(2)
  })

  test('R5 that is complete but whose response was lost returns its item', async () => {
    await using proxy = await startLossyProxy(
      server.url,
      (method, nth) => method === 'HEAD' || (method === 'PATCH' && nth > 2),
    )
    const { client, direct, token } = await bucket(proxy.url)
    const resume = memoryStore()
    expect(await caught(client.upload(file, { resume }))).toMatchObject({ name: 'ConnectionError' })
    const [url] = await urlsOf(direct)
    await using watched = await startWatchedProxy(() => server.url)
    // Uses the same URL in the key, as the URL is part of it.
    const [id = ''] = resume.kept.values()
    const again = { ...memoryStore(), get: () => id }
    const media = await createClient({ url: watched.url, token }).upload(file, { resume: again })
    expect([media.url, watched.chunks()]).toEqual([url, []])
    await expectOneItem(direct, media)

    // The item was deleted since, so the file is stored again.
    await direct.delete(media.id)
    const second = await createClient({ url: watched.url, token }).upload(file, { resume: again })
    expect(second.id).not.toBe(media.id)
    await expectOneItem(direct, second)
  })

  test('R6 starts again in another bucket', async () => {
    const { proxy, direct, resume } = await interrupted()
    await using _ = proxy
    const other = await bucket(proxy.url)
    await expectOneItem(other.direct, await other.client.upload(file, { resume }))
    expect(offsets(proxy.chunks())).toEqual([0, chunkSize, 2 * chunkSize])
    expect(await urlsOf(direct)).toEqual([])
  })

  test('R6 starts again if it was terminated or its state is invalid', async () => {
    const { proxy, token, direct, resume, client } = await interrupted()
    await using _ = proxy
    const [[key, id] = ['', '']] = resume.kept
    await tusOf({ url: server.url, token }).terminate(`/api/uploads/${id}`)
    for (const value of [id, '', '../media', 'a b']) {
      resume.kept.set(key, value)
      proxy.passed.length = 0
      const media = await client.upload(file, { resume })
      expect(offsets(proxy.chunks())).toEqual([0, chunkSize, 2 * chunkSize])
      expect(proxy.passed.every(({ path }) => !/\.\.|%20|uploads\/$/.test(path))).toBe(true)
      await expectOneItem(direct, media)
      await direct.delete(media.id)
    }
  })

  test.each<[string, File]>([
    ['bytes', new File([bytes.map((byte, index) => (index === 5 ? byte ^ 1 : byte))], file.name, file)],
    ['size', new File([bytes.subarray(1)], file.name, file)],
    ['time', new File([bytes], file.name, { type: file.type, lastModified: 2 })],
    ['name', new File([bytes], 'another.bin', file)],
  ])('R6 starts again for a file with another %s', async (_name, changed) => {
    const { proxy, direct, resume, client } = await interrupted()
    await using _ = proxy
    const media = await client.upload(changed, { resume })
    expect(proxy.chunks()[0]?.offset).toBe(0)
    expect(media.sha256).toBe(
      createHash('sha256')
        .update(await changed.bytes())
        .digest('hex'),
    )
    expect(await urlsOf(direct)).toEqual([media.url])
  })

  test('R6 starts again with another name or type, even with the same fingerprint', async () => {
    const { proxy, resume, client } = await interrupted()
    await using _ = proxy
    const media = await client.upload(file, { resume, filename: 'b.bin' })
    expect([media.filename, proxy.chunks()[0]?.offset]).toEqual(['b.bin', 0])
  })

  test('R6 is resumed by only one of two concurrent uploads of the file; each creates an item', async () => {
    const { proxy, resume, client } = await interrupted()
    await using _ = proxy
    const [one, other] = await Promise.all([client.upload(file, { resume }), client.upload(file, { resume })])
    expect(one.id).not.toBe(other.id)
    expect([one.sha256, other.sha256]).toEqual([sha256, sha256])
    expect(resume.kept.size).toBe(0)
    const sizes = proxy.chunks().map(({ bytes }) => bytes)
    expect(sizes.reduce((sum, size) => sum + size, 0)).toBe(2 * bytes.length - chunkSize)
  })

  test('R6 starts again if the service drops it while it is sent', async () => {
    const { proxy, token, direct, resume, client } = await interrupted()
    await using _ = proxy
    const [id = ''] = resume.kept.values()
    let ended: Promise<Response> | undefined
    const media = await client.upload(file, {
      resume,
      onProgress({ sent }) {
        if (sent >= 2 * chunkSize) ended ??= tusOf({ url: server.url, token }).terminate(`/api/uploads/${id}`)
      },
    })
    expect((await ended)?.status).toBe(204)
    await expectOneItem(direct, media)
  })
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
  await using small = await startServer({ MEDIABUCKET_MAX_FILE_SIZE: '19000000' })
  await using proxy = await startWatchedProxy(() => small.url)
  const client = createClient({ url: proxy.url, token: small.token, retry })
  const tooLarge = await caught(client.upload(file))
  expect(tooLarge).toBeInstanceOf(ProblemError)
  expect(tooLarge).toMatchObject({ status: 413, problem: { code: 'file-too-large' } })
  await runHere(small.data, 'bucket set', 'default', '--max-bytes', '1000')
  const full = await caught(client.upload(new Uint8Array(18_000_000)))
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

test('bytes without a name need a fingerprint for stored state', async () => {
  const { client } = await bucket()
  const resume = memoryStore()
  expect(await caught(client.upload(new Blob([bytes]), { resume }))).toMatchObject({
    name: 'TypeError',
    message: expect.stringContaining('fingerprint'),
  })
  const media = await client.upload(new Blob([bytes]), { resume, fingerprint: 'the first' })
  expect(media.sha256).toBe(sha256)
})
