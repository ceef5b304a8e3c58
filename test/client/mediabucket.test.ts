import { createHash, randomBytes } from 'node:crypto'
import { createReadStream, openAsBlob } from 'node:fs'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import {
  type Client,
  createClient,
  ProblemError,
  type UploadProgress,
  type UploadSource,
} from '../../packages/client/src/index.ts'
import { startServer, type TestServer } from '../harness/server.ts'

let server: TestServer
let directory: string
beforeAll(async () => {
  server = await startServer()
  directory = await mkdtemp(join(tmpdir(), 'mediabucket-client-'))
})
afterAll(async () => {
  await server[Symbol.asyncDispose]()
  await rm(directory, { recursive: true })
})

/** A client with a new bucket of its own. */
async function newBucket(name: string, ...args: string[]): Promise<Client> {
  const { stdout } = await server.command('token', 'create', '--bucket', name, ...args)
  return createClient({ url: server.url, token: stdout.trim() })
}

async function urlsOf(client: Client): Promise<string[]> {
  const urls: string[] = []
  for await (const url of client.media()) urls.push(url)
  return urls
}

const caught = (promise: Promise<unknown>) => promise.catch((error: unknown) => error)
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
    const media = await (await newBucket('sources')).upload(source())
    expect(media).toMatchObject({ size: bytes.length, sha256 })
  })

  test('a file on disk, as a Blob and as a stream', async () => {
    const client = await newBucket('files')
    const path = join(directory, 'file.bin')
    await writeFile(path, bytes)
    const asBlob = await client.upload(await openAsBlob(path))
    const asStream = await client.upload(createReadStream(path))
    expect([asBlob.sha256, asStream.sha256]).toEqual([sha256, sha256])
  })

  test('nothing at all', async () => {
    const client = await newBucket('empty-files')
    for (const source of [new Blob([]), new Uint8Array(0), new Blob([]).stream()]) {
      expect(await client.upload(source)).toMatchObject({ size: 0 })
    }
  })
})

test('an item is uploaded, listed, described, fetched and deleted, by its id and by its URL', async () => {
  const client = await newBucket('one-item')
  const file = new File(['a,b\n1,2\n'], 'Übersicht "1".csv', { type: 'text/csv' })
  const media = await client.upload(file)
  expect(media).toMatchObject({
    url: `${server.url}/media/${media.id}.csv`,
    filename: 'Übersicht "1".csv',
    content_type: 'text/csv',
    size: 8,
    width: null,
  })
  expect(await client.listPage(1)).toMatchObject({ data: [media.url], total: 1, from: 1, to: 1 })
  for (const reference of [media.id, media.url, new URL(media.url)]) {
    expect(await client.describe(reference)).toEqual(media)
    const answer = await client.get(reference)
    expect([answer.status, answer.headers.get('content-type')]).toEqual([
      200,
      expect.stringMatching(/^text\/csv/),
    ])
    expect(await answer.text()).toBe('a,b\n1,2\n')
  }
  await client.delete(media.url)
  expect(await client.listPage(1)).toMatchObject({ data: [], total: 0, from: null, to: null })
  const calls = [client.delete(media.id), client.describe(media.url), client.get(media.id)]
  for (const error of await Promise.all(calls.map(caught))) {
    expect(error).toMatchObject({
      name: 'ProblemError',
      status: 404,
      attempts: 1,
      problem: { code: 'media-unknown', status: 404, type: `${server.url}/problems/media-unknown` },
    })
  }
})

test('filename and contentType go before those of the source', async () => {
  const client = await newBucket('names')
  const source = new File(['x'], 'a.bin', { type: 'application/x-thing' })
  const media = await client.upload(source, { filename: 'note.txt', contentType: 'text/plain' })
  expect(media).toMatchObject({ filename: 'note.txt', content_type: 'text/plain' })
  expect(await client.upload(new Uint8Array(1))).toMatchObject({ filename: null })
})

test.each(['two words.txt', '100%.txt', "it's (1) *.txt", '写真.jpg', '👩‍👩‍👧.png', 'semi;colon=x.txt'])(
  'the name %j arrives as it is',
  async (filename) => {
    const client = await newBucket('odd-names')
    expect(await client.upload(new Blob(['x']), { filename })).toMatchObject({ filename })
  },
)

test('250 files are walked in the order of their upload, from every form of the URL', async () => {
  const { stdout } = await server.command('token', 'create', '--bucket', 'many')
  const token = stdout.trim()
  const client = createClient({ url: server.url, token })
  const uploaded: string[] = []
  for (let turn = 0; turn < 10; turn += 1) {
    const some = await Promise.all(
      Array.from({ length: 25 }, (_, index) => client.upload(new Blob([`${turn}/${index}`]))),
    )
    uploaded.push(...some.map(({ url }) => url))
  }
  const urls = await urlsOf(client)
  expect(urls).toHaveLength(250)
  expect(new Set(urls)).toEqual(new Set(uploaded))

  for (const path of ['/', '/api/media', '/api/media/', '/v1/media', '/v1/media/?page=9']) {
    expect(await urlsOf(createClient({ url: `${server.url}${path}`, token }))).toEqual(urls)
  }
  const last = await client.listPage(25)
  expect(last).toMatchObject({ current_page: 25, last_page: 25, from: 241, to: 250, next_page_url: null })
  expect(last.links).toHaveLength(27)

  for (const url of urls.slice(0, 3)) await client.delete(url)
  expect(await urlsOf(client)).toEqual(urls.slice(3))
})

test.each([
  ['wrapped', { MEDIABUCKET_ENVELOPE: 'wrapped' }],
  ['windowed', { MEDIABUCKET_LINKS: 'window' }],
  ['without extensions', { MEDIABUCKET_EXTENSIONS: 'off' }],
  ['behind another base URL', { MEDIABUCKET_BASE_URL: 'https://media.example.org/box' }],
])('a service that answers %s is walked and emptied alike', async (_name, settings) => {
  await using other = await startServer(settings)
  const client = createClient({ url: other.url, token: other.token })
  await Promise.all(
    Array.from({ length: 21 }, (_, index) =>
      client.upload(new File([`${index}`], `${index}.txt`, { type: 'text/plain' })),
    ),
  )
  const urls = await urlsOf(client)
  expect(urls).toHaveLength(21)
  const [first = ''] = urls
  const { id } = await client.describe(first)
  expect(await (await client.get(id)).text()).toMatch(/^\d+$/)
  for (const url of urls) await client.delete(url)
  expect(await urlsOf(client)).toEqual([])
})

test('progress counts every byte, once and upwards', async () => {
  const client = await newBucket('progress')
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
  const client = await newBucket('throwing')
  const mistake = new Error('no such element')
  const onProgress = () => {
    throw mistake
  }
  expect(await caught(client.upload(new Blob(['x']), { onProgress }))).toBe(mistake)
  expect(await urlsOf(client)).toEqual([])
})

test('an aborted upload rejects with the reason, lets go of its source and leaves nothing', async () => {
  const client = await newBucket('aborted')
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
  const client = await newBucket('aborted-blob')
  const aborter = new AbortController()
  const onProgress = () => aborter.abort()
  const error = await caught(client.upload(new Blob([bytes]), { signal: aborter.signal, onProgress }))
  expect(error).toMatchObject({ name: 'AbortError' })
  expect(await urlsOf(client)).toEqual([])
})

test('refusals are problems: an unknown token, a missing scope, an unknown type of token', async () => {
  const reader = await newBucket('scoped', '--scope', 'media:read')
  const refused = await caught(reader.upload(new Blob(['x'])))
  expect(refused).toBeInstanceOf(ProblemError)
  expect(refused).toMatchObject({ status: 403, problem: { code: 'scope-missing' } })

  const stranger = createClient({ url: server.url, token: 'nonsense' })
  const calls = [stranger.listPage(1), stranger.upload(new Blob(['x']).stream())]
  for (const error of await Promise.all(calls.map(caught))) {
    expect(error).toMatchObject({ name: 'ProblemError', status: 401, problem: { code: 'token-malformed' } })
    expect(String(error)).not.toContain('nonsense')
  }
})

test('a file that is too large is refused before its bytes are sent', async () => {
  await using small = await startServer({ MEDIABUCKET_MAX_FILE_SIZE: '1000' })
  const client = createClient({ url: small.url, token: small.token })
  const error = await caught(client.upload(new Uint8Array(1001)))
  expect(error).toMatchObject({ status: 413, attempts: 1, problem: { code: 'file-too-large' } })
})

test('no token reaches the log of the service', async () => {
  expect(server.stderr()).not.toMatch(/mbkt_[0-9a-z]{8}/)
})
