import { createHash, randomBytes } from 'node:crypto'
import { createReadStream, openAsBlob } from 'node:fs'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createClient, type UploadProgress, type UploadSource } from '../../packages/client/src/index.ts'
import { type SharedServer, startServer } from '../harness/server.ts'
import { sharedServer } from '../harness/shared-server.ts'
import { caught, newBucket, urlsOf } from './buckets.ts'

let server: SharedServer
let directory: string
beforeAll(async () => {
  server = await sharedServer()
  directory = await mkdtemp(join(tmpdir(), 'mediabucket-client-'))
})
afterAll(async () => {
  await rm(directory, { recursive: true })
})

const bytes = randomBytes(300_000)
const sha256 = createHash('sha256').update(bytes).digest('hex')

describe('every kind of source arrives byte for byte', () => {
  test.each<[string, () => UploadSource]>([
    ['Blob', () => new Blob([bytes])],
    ['File', () => new File([bytes], 'a.bin')],
    ['Uint8Array', () => new Uint8Array(bytes)],
    ['a view into a larger buffer', () => Buffer.concat([Buffer.from('xx'), bytes]).subarray(2)],
    ['ReadableStream', () => new Blob([bytes]).stream()],
    ['a piped stream', () => new Blob([bytes]).stream().pipeThrough(new TransformStream())],
    ['a stream of Node.js', () => Readable.from([bytes.subarray(0, 7), Buffer.alloc(0), bytes.subarray(7)])],
    [
      'an async generator',
      async function* () {
        yield bytes.subarray(0, 100_000)
        yield bytes.subarray(100_000)
      },
    ],
  ])('%s', async (_name, source) => {
    const media = await (await newBucket(server, 'sources')).upload(source())
    expect(media).toMatchObject({ size: bytes.length, sha256 })
  })

  test('E1 with its expiry, in one request, in chunks and as a form', async () => {
    const client = await newBucket(server, 'expiring')
    const expiresAt = new Date(Date.now() + 86_400_000)
    const expected = { expires_at: expiresAt.toISOString() }
    expect(await client.upload(new Blob(['one']), { expiresAt })).toMatchObject(expected)
    expect(await client.upload(new Blob(['two']), { expiresAt, piecesAbove: 0 })).toMatchObject(expected)
    const form = await client.uploadAll([{ source: new Blob(['three']), filename: 'three.txt' }], {
      expiresAt,
    })
    expect(form).toEqual([expect.objectContaining(expected)])
  })

  test('a file on disk, as a Blob and as a stream', async () => {
    const client = await newBucket(server, 'files')
    const path = join(directory, 'file.bin')
    await writeFile(path, bytes)
    const asBlob = await client.upload(await openAsBlob(path))
    const asStream = await client.upload(createReadStream(path))
    expect([asBlob.sha256, asStream.sha256]).toEqual([sha256, sha256])
  })

  test('an empty source', async () => {
    const client = await newBucket(server, 'empty-files')
    for (const source of [new Blob([]), new Uint8Array(0), new Blob([]).stream()]) {
      expect(await client.upload(source)).toMatchObject({ size: 0 })
    }
  })
})

test('filename and contentType override those of the source', async () => {
  const client = await newBucket(server, 'names')
  const source = new File(['x'], 'a.bin', { type: 'application/x-thing' })
  const media = await client.upload(source, { filename: 'note.txt', contentType: 'text/plain' })
  expect(media).toMatchObject({ filename: 'note.txt', content_type: 'text/plain' })
  expect(await client.upload(new Uint8Array(1))).toMatchObject({ filename: null })
})

test.each(['two words.txt', '100%.txt', "it's (1) *.txt", '写真.jpg', '👩‍👩‍👧.png', 'semi;colon=x.txt'])(
  'the name %j arrives as it is',
  async (filename) => {
    const client = await newBucket(server, 'odd-names')
    expect(await client.upload(new Blob(['x']), { filename })).toMatchObject({ filename })
  },
)

test('progress increases and counts every byte once', async () => {
  const client = await newBucket(server, 'progress')
  for (const [source, total] of [
    [new Blob([bytes]), bytes.length],
    [new Uint8Array(bytes), bytes.length],
    [new Blob([bytes]).stream(), null],
    [new Blob([]), 0],
  ] as const) {
    const seen: UploadProgress[] = []
    await client.upload(source, { onProgress: (progress) => seen.push(progress) })
    const sent = seen.map((progress) => progress.sent)
    expect(sent[0]).toBe(0)
    expect(sent.at(-1)).toBe(total ?? bytes.length)
    expect(sent).toEqual([...new Set(sent)].sort((a, b) => a - b))
    if (total !== 0) expect(sent.length).toBeGreaterThan(3)
    expect(seen.every((progress) => progress.total === total)).toBe(true)
  }
})

test('what onProgress throws ends the upload', async () => {
  const client = await newBucket(server, 'throwing')
  const mistake = new Error('no such element')
  const onProgress = () => {
    throw mistake
  }
  expect(await caught(client.upload(new Blob(['x']), { onProgress }))).toBe(mistake)
  expect(await urlsOf(client)).toEqual([])
})

test('an aborted upload rejects with the reason, cancels its source and stores nothing', async () => {
  const client = await newBucket(server, 'aborted')
  const aborter = new AbortController()
  let closed = false
  const source = Readable.from(
    (async function* () {
      for (;;) yield Buffer.alloc(65_536)
    })(),
  ).on('close', () => {
    closed = true
  })
  const upload = client.upload(source, {
    signal: aborter.signal,
    onProgress: ({ sent }) => {
      if (sent > 1_000_000) aborter.abort('enough')
    },
  })
  expect(await caught(upload)).toBe('enough')
  expect(await urlsOf(client)).toEqual([])
  expect(closed).toBe(true)
})

test('an aborted upload of a Blob rejects with an AbortError', async () => {
  const client = await newBucket(server, 'aborted-blob')
  const aborter = new AbortController()
  const onProgress = () => aborter.abort()
  const error = await caught(client.upload(new Blob([bytes]), { signal: aborter.signal, onProgress }))
  expect(error).toMatchObject({ name: 'AbortError' })
  expect(await urlsOf(client)).toEqual([])
})

test('a file above the size limit is refused before its bytes are sent', async () => {
  await using small = await startServer({ MEDIABUCKET_MAX_FILE_SIZE: '1000' })
  const client = createClient({ url: small.url, token: small.token })
  const error = await caught(client.upload(new Uint8Array(1001)))
  expect(error).toMatchObject({ status: 413, attempts: 1, problem: { code: 'file-too-large' } })
})

describe('several files in one form', () => {
  test('U4, L10 arrive byte for byte in their order, with the given names', async () => {
    const client = await newBucket(server, 'forms')
    const names = ['b "quoted".bin', '100%22.bin', 'e\u0301 nfd.txt', '\u00e9 nfc.txt', '🐚;=.txt', 'empty']
    const files = names.map((filename, index) => ({
      source: index === 5 ? new Blob([]) : new Blob([bytes.subarray(0, 1000 + index)]),
      filename,
    }))
    const seen: UploadProgress[] = []
    const media = await client.uploadAll(files, { onProgress: (progress) => seen.push(progress) })
    // U8: the service stores names in their composed form.
    expect(media.map(({ filename }) => filename)).toEqual(names.map((name) => name.normalize('NFC')))
    expect(media.map(({ size }) => size)).toEqual([1000, 1001, 1002, 1003, 1004, 0])
    expect(media[1]?.sha256).toBe(createHash('sha256').update(bytes.subarray(0, 1001)).digest('hex'))
    expect(await urlsOf(client)).toEqual(media.map(({ url }) => url))
    expect(seen.at(-1)?.sent).toBe(seen.at(-1)?.total)
  })

  test('I2 repeated with the same key return the same items; one file and no file are accepted', async () => {
    const client = await newBucket(server, 'forms-again')
    const files = ['a.txt', 'b.txt'].map((filename) => ({ source: new Blob([filename]), filename }))
    const first = await client.uploadAll(files, { idempotencyKey: 'one' })
    expect(await client.uploadAll(files, { idempotencyKey: 'one' })).toEqual(first)
    expect(await client.uploadAll(files.slice(0, 1))).toMatchObject([{ filename: 'a.txt', size: 5 }])
    expect(await client.uploadAll([])).toEqual([])
    expect(await urlsOf(client)).toHaveLength(3)
  })
})
