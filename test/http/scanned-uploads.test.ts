import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import { join } from 'node:path'
import { buffer } from 'node:stream/consumers'
import {
  CompleteMultipartUploadCommand,
  CreateMultipartUploadCommand,
  PutObjectCommand,
  UploadPartCommand,
} from '@aws-sdk/client-s3'
import { Type } from 'typebox'
import { Value } from 'typebox/value'
import { describe, expect, onTestFinished, test } from 'vitest'
import { listen } from '../client/foreign-service.ts'
import { bucketWith } from '../harness/bucket.ts'
import { eicar, startClamav, startClamd } from '../harness/clamd.ts'
import { currentEngine } from '../harness/database.ts'
import { temporaryDirectory } from '../harness/directory.ts'
import { filePart, formBytes, formType } from '../harness/form.ts'
import { expectProblem } from '../harness/problem.ts'
import { countStored } from '../harness/resources.ts'
import { clientOf, makePair, startS3Server } from '../harness/s3-door.ts'
import { scrape } from '../harness/scrape.ts'
import { runCommand, startServer, type TestServer } from '../harness/server.ts'
import { tusOf } from '../harness/tus.ts'
import { until } from '../harness/until.ts'
import { parseProblem, readChanges, readItem } from '../harness/wire.ts'

const settings = { MEDIABUCKET_URL_UPLOADS: '127.0.0.1', MEDIABUCKET_SCAN_TIMEOUT: '60s' }

/** A scanner that takes the bytes of a file as a POST. */
async function startHttpScanner(respond: (bytes: Buffer) => readonly [status: number, body: string]) {
  const scanner = await listen(async (request, response) => {
    const [status, body] = respond(await buffer(request))
    response.writeHead(status, { 'content-type': 'text/plain' }).end(body)
  })
  onTestFinished(() => scanner[Symbol.asyncDispose]())
  return `${scanner.url}/scan`
}

const start = async (scan: string, more: Readonly<Record<string, string>> = {}) => {
  const started = await startS3Server({ ...settings, MEDIABUCKET_SCAN: scan, ...more })
  onTestFinished(() => started.server[Symbol.asyncDispose]())
  return started
}

const post = (
  { request }: Pick<TestServer, 'request'>,
  body: string | Uint8Array<ArrayBuffer>,
  headers: Record<string, string> = {},
) => request('/api/media', { method: 'POST', body, headers })

const scanners: readonly (readonly [name: string, start: () => Promise<string>])[] = [
  [
    'a scanner of the protocol of clamd',
    async () => {
      const clamd = await startClamd()
      onTestFinished(() => clamd.close())
      return clamd.setting
    },
  ],
  [
    'a scanner over HTTP',
    () => startHttpScanner((bytes) => (bytes.includes(eicar) ? [422, 'Eicar-Test-Signature'] : [204, ''])),
  ],
  ['ClamAV', () => startClamav({ maxSize: '20M' })],
]

describe.each(scanners)('SC1 with %s', (_, startScanner) => {
  test('SC1, SC2 a file that is refused is stored by no way of upload, and leaves nothing; a clean one is stored by each', async () => {
    const { server, endpoint } = await start(await startScanner())
    const client = clientOf(
      endpoint,
      await makePair(server, '--bucket', 'default', '--scope', 'media:read,media:write,media:delete'),
    )
    onTestFinished(() => client.destroy())
    const [Bucket, large] = ['default', 'x'.repeat(150_000)]
    const tus = tusOf(server)
    const other = await listen((request, response) => {
      response.end(request.url === '/bad' ? eicar : 'clean')
    })
    onTestFinished(() => other[Symbol.asyncDispose]())
    const codeOf = async (response: Response) =>
      response.ok ? 'stored' : parseProblem(await response.text()).code
    const sent = (sending: Promise<unknown>) =>
      sending.then(
        () => 'stored',
        (error: unknown) => (error instanceof Error ? error.name : 'unknown'),
      )
    const fromUrl = (path: string) =>
      server.request('/api/media/from-url', {
        method: 'POST',
        body: JSON.stringify({ url: other.url + path }),
        headers: { 'content-type': 'application/json' },
      })
    const resumable = async (...chunks: string[]) => {
      const url = await tus.createWithLength(chunks.join('').length)
      let offset = 0
      for (const chunk of chunks) {
        const response = await tus.sendChunk(url, offset, chunk)
        if (!response.ok) return [await codeOf(response), (await tus.send('HEAD', url, {})).status].join()
        offset += chunk.length
      }
      return 'stored'
    }
    const parts = async (...bodies: string[]) => {
      const object = { Bucket, Key: `parts-${randomBytes(4).toString('hex')}` }
      const { UploadId } = await client.send(new CreateMultipartUploadCommand(object))
      const Parts: { ETag: string | undefined; PartNumber: number }[] = []
      for (const [index, Body] of bodies.entries()) {
        const PartNumber = index + 1
        const { ETag } = await client.send(new UploadPartCommand({ ...object, UploadId, PartNumber, Body }))
        Parts.push({ ETag, PartNumber })
      }
      return await sent(
        client.send(new CompleteMultipartUploadCommand({ ...object, UploadId, MultipartUpload: { Parts } })),
      )
    }
    const form = (...files: string[]) =>
      post(server, formBytes(...files.map((file, index) => filePart(`${index}.txt`, file))), {
        'content-type': formType,
      })
    const ways: Readonly<Record<string, (bad: string) => Promise<string | undefined>>> = {
      raw: async (text) => codeOf(await post(server, text)),
      'large raw': async (text) => codeOf(await post(server, large + text)),
      form: async (text) => codeOf(await form(text)),
      'form of several': async (text) => codeOf(await form('one', large, text)),
      resumable: (text) => resumable(text),
      'large resumable': (text) => resumable(large, text),
      'S3 put': (Body) => sent(client.send(new PutObjectCommand({ Bucket, Key: 'small', Body }))),
      'large S3 put': (text) =>
        sent(client.send(new PutObjectCommand({ Bucket, Key: 'large', Body: large + text }))),
      'S3 parts': (text) => parts('x'.repeat(5_242_880), text),
      URL: async (text) => codeOf(await fromUrl(text === eicar ? '/bad' : '/good')),
    }
    const before = await countStored(server)
    const seen: Record<string, string | undefined> = {}
    for (const [name, upload] of Object.entries(ways)) seen[name] = await upload(eicar)
    expect(seen).toEqual({
      ...Object.fromEntries(Object.keys(ways).map((name) => [name, 'file-refused'])),
      ...{ resumable: 'file-refused,404', 'large resumable': 'file-refused,404' },
      ...{ 'S3 put': 'InvalidRequest', 'large S3 put': 'InvalidRequest', 'S3 parts': 'InvalidRequest' },
    })
    await until(
      'no bytes are left',
      async () => JSON.stringify(await countStored(server)) === JSON.stringify(before),
    )
    for (const [name, upload] of Object.entries(ways)) seen[name] = await upload('clean')
    expect([...new Set(Object.values(seen))]).toEqual(['stored'])
  })

  test('SC2, SC6 the problem has the name of the signature, and the quota is free again', async () => {
    const { server } = await start(await startScanner())
    const { authorization } = await bucketWith(server, '--max-bytes', '100', '--max-items', '1')
    const problem = await expectProblem(await post(server, eicar, { authorization }), 422, 'file-refused')
    expect(problem.detail).toMatch(/^The scanner refuses the file: Eicar-Test-Signature(\.UNOFFICIAL)?\.$/)
    expect((await post(server, 'x'.repeat(100), { authorization })).status).toBe(201)
    const line = await until('the line', () =>
      server.log().find(({ msg }) => msg === 'the scanner has refused a file'),
    )
    expect(line).toMatchObject({
      level: 40,
      reason: expect.stringContaining('Eicar'),
      sha256: expect.stringMatching(/^[0-9a-f]{16}…$/),
    })
    const { samples } = await scrape(server)
    expect(samples.get('mediabucket_scans_total{outcome="refused"}')).toBe(1)
    expect(samples.get('mediabucket_scans_total{outcome="clean"}')).toBe(1)
  })
})

test('SC1 nothing of a file is visible before its scan has ended, and an acknowledged one stays after a kill', async () => {
  const clamd = await startClamd()
  onTestFinished(() => clamd.close())
  clamd.hold()
  const { server } = await start(clamd.setting)
  const [small, large] = [post(server, 'clean'), post(server, 'x'.repeat(150_000))]
  await until('two scans', () => clamd.scans() === 2)
  expect((await countStored(server)).total).toBe(0)
  expect((await readChanges(await server.request('/api/changes'))).data).toEqual([])
  clamd.release()
  const items = [await readItem(await small), await readItem(await large)]
  clamd.hold()
  const lost = post(server, 'x'.repeat(150_000)).catch(() => null)
  await until('a third scan', () => clamd.scans() === 3)
  await server.kill()
  expect(await lost).toBeNull()
  await using again = await startServer({ ...settings, MEDIABUCKET_SCAN: clamd.setting }, server.data)
  const request: TestServer['request'] = (path, init = {}) =>
    fetch(again.url + path, {
      ...init,
      headers: { authorization: `Bearer ${server.token}`, ...init.headers },
    })
  // In a store, what the kill left is removed when its intent has passed.
  const left = currentEngine().endsWith('disk') ? 0 : 1
  expect(await countStored({ ...again, request })).toEqual({ total: 2, blobs: 2 + left, temporary: 0 })
  for (const { id } of items) expect((await request(`/media/${id}`)).status).toBe(200)
})

test('SC4 while the scanner does not respond, uploads wait for MEDIABUCKET_SCAN_TIMEOUT, and are then refused with 503', async () => {
  const clamd = await startClamd()
  onTestFinished(() => clamd.close())
  await clamd.close()
  const { server } = await start(clamd.setting, { MEDIABUCKET_SCAN_TIMEOUT: '1s' })
  const before = await countStored(server)
  const refused = await post(server, 'x'.repeat(150_000))
  expect(refused.headers.get('retry-after')).not.toBeNull()
  await expectProblem(refused, 503, 'scanner-unavailable')
  await until('no bytes are left', async () => (await countStored(server)).temporary === 0)
  expect(await countStored(server)).toEqual(before)
  // A resumable upload goes on when the scanner responds again.
  const tus = tusOf(server)
  const url = await tus.createWithLength(5)
  await expectProblem(await tus.sendChunk(url, 0, 'clean'), 503, 'scanner-unavailable')
  const large = { url: await tus.createWithLength(150_000), bytes: 'x'.repeat(150_000) }
  await expectProblem(await tus.sendChunk(large.url, 0, large.bytes), 503, 'scanner-unavailable')
  const ready = await server.request('/readyz?writes')
  expect(parseProblem(await ready.text()).reasons).toEqual(['scanner-unavailable'])
  expect(await (await server.request('/readyz')).json()).toMatchObject({ reads: true, writes: false })
  await clamd.listen()
  const offset = Number((await tus.send('HEAD', url, {})).headers.get('upload-offset'))
  expect((await tus.sendChunk(url, offset, 'clean'.slice(offset))).status).toBe(204)
  const stored = Number((await tus.send('HEAD', large.url, {})).headers.get('upload-offset'))
  expect((await tus.sendChunk(large.url, stored, large.bytes.slice(stored))).status).toBe(204)
  expect((await countStored(server)).total).toBe(2)
  await until('readiness', async () => (await server.request('/readyz?writes')).ok)
  expect(server.log().filter(({ msg }) => msg.startsWith('the scanner does not scan files'))).toHaveLength(1)
})

test('R5 an upload that was refused with 503 after its last request declared the length is not shown as complete', async () => {
  const clamd = await startClamd()
  onTestFinished(() => clamd.close())
  await clamd.close()
  const { server } = await start(clamd.setting, { MEDIABUCKET_SCAN_TIMEOUT: '1s' })
  const tus = tusOf(server)
  const url = await tus.create({ 'upload-defer-length': '1' })
  expect((await tus.sendChunk(url, 0, 'clean')).status).toBe(204)
  const end = () => tus.sendChunk(url, 5, '', { 'upload-length': '5' })
  await expectProblem(await end(), 503, 'scanner-unavailable')
  const { headers } = await tus.head(url)
  const shown = ['upload-offset', 'upload-defer-length', 'upload-length', 'content-location']
  expect(shown.map((name) => headers.get(name))).toEqual(['5', '1', null, null])
  await clamd.listen()
  expect((await end()).status).toBe(204)
  expect((await tus.head(url)).headers.get('upload-length')).toBe('5')
  expect((await countStored(server)).total).toBe(1)
})

test.each([
  ['of clamd', (port: number) => `clamd:127.0.0.1:${port}`],
  ['over HTTP', (port: number) => `http://127.0.0.1:${port}/scan`],
])(
  'SC4 a proxy of a scanner %s that does not run is no verdict, and resumable uploads stay',
  async (_, settingOf) => {
    const proxy = createServer((socket) => {
      socket.on('error', () => undefined)
      socket.once('data', () => socket.resetAndDestroy())
    })
    await new Promise<void>((done) => proxy.listen(0, '127.0.0.1', done))
    onTestFinished(() => new Promise<void>((done) => proxy.close(() => done())))
    const { server } = await start(settingOf((proxy.address() as AddressInfo).port), {
      MEDIABUCKET_SCAN_TIMEOUT: '3s',
    })
    const large = 'x'.repeat(5_000_000)
    await expectProblem(await post(server, large), 503, 'scanner-unavailable')
    const tus = tusOf(server)
    const url = await tus.createWithLength(large.length)
    await expectProblem(await tus.sendChunk(url, 0, large), 503, 'scanner-unavailable')
    expect((await tus.send('HEAD', url, {})).status).toBe(200)
  },
)

test('O14, SC3 serve --check --connect checks the scanner, and says what is wrong', async () => {
  const clamd = await startClamd()
  onTestFinished(() => clamd.close())
  const wrong = await listen((_, response) => void response.writeHead(500).end())
  const silent = createServer()
  await once(silent.listen(0, '127.0.0.1'), 'listening')
  onTestFinished(async () => {
    silent.close()
    await wrong[Symbol.asyncDispose]()
  })
  await using directory = await temporaryDirectory()
  const check = (scan: string) =>
    runCommand(['serve', '--check', '--connect'], {
      MEDIABUCKET_DATA: join(directory.path, 'data'),
      MEDIABUCKET_SCAN: scan,
    }).catch((error: unknown) => Object(error))
  const { port } = Value.Parse(Type.Object({ port: Type.Number() }), silent.address())
  const [good, failing, late] = await Promise.all([
    check(clamd.setting),
    check(wrong.url),
    check(`clamd:127.0.0.1:${port}`),
  ])
  expect(good.stdout).toContain('can be reached')
  await clamd.close()
  const refused = await check(clamd.setting)
  for (const [result, reason] of [
    [
      failing,
      'The scanner of uploads does not respond: the scanner responded with 500. Check MEDIABUCKET_SCAN',
    ],
    [late, 'The scanner of uploads does not respond: no answer within 5 seconds. Check MEDIABUCKET_SCAN'],
    [refused, 'The scanner of uploads does not respond: connect ECONNREFUSED'],
  ] as const) {
    expect(result.code).toBe(1)
    expect(result.stderr).toContain(reason)
  }
})

test('SC4 an upload is stored if the scanner responds again in time', async () => {
  const clamd = await startClamd()
  onTestFinished(() => clamd.close())
  await clamd.close()
  const { server } = await start(clamd.setting)
  const waiting = post(server, 'clean')
  const refused = post(server, eicar)
  await clamd.listen()
  expect((await waiting).status).toBe(201)
  await expectProblem(await refused, 422, 'file-refused')
})

test('SC4 with MEDIABUCKET_SCAN_FAILURE=accept, files that cannot be scanned are stored, and refused ones are not', async () => {
  const clamd = await startClamd({ maxSize: 100_000 })
  onTestFinished(() => clamd.close())
  // Long enough for a verdict on a busy machine.
  const accept = { MEDIABUCKET_SCAN_TIMEOUT: '10s', MEDIABUCKET_SCAN_FAILURE: 'accept' }
  const { server } = await start(clamd.setting, accept)
  await expectProblem(await post(server, eicar), 422, 'file-refused')
  expect((await post(server, 'x'.repeat(150_000))).status).toBe(201)
  await clamd.close()
  expect((await post(server, eicar)).status).toBe(201)
  expect((await server.request('/readyz?writes')).status).toBe(200)
})

test.each(['ClamAV', 'a scanner'])(
  'SC5 a file beyond StreamMaxLength of %s is refused at once',
  async (name) => {
    const clamd = await startClamd({ maxSize: 1_048_576 })
    onTestFinished(() => clamd.close())
    const { server } = await start(name === 'ClamAV' ? await startClamav() : clamd.setting)
    expect((await post(server, randomBytes(1_000_000))).status).toBe(201)
    for (const size of [1_100_000, 5_000_000, 30_000_000])
      await expectProblem(await post(server, randomBytes(size)), 422, 'file-refused')
  },
)

test('SC3 a scanner over HTTP refuses with 406 and 422, and any other status but 2xx and 413 is no verdict', async () => {
  let response: readonly [number, string] = [200, '']
  const scan = await startHttpScanner(() => response)
  const { server } = await start(scan, { MEDIABUCKET_SCAN_TIMEOUT: '1s' })
  const cases: readonly (readonly [number, string, number, string])[] = [
    [406, 'Worm\nmore', 422, 'The scanner refuses the file: Worm.'],
    [422, '{"detail": "a \\u202e<b>\\n"}', 422, 'The scanner refuses the file: a <b>.'],
    [422, '', 422, 'The scanner refuses the file.'],
    [413, '', 422, 'The scanner of uploads does not scan files of this size.'],
    ...[302, 400, 401, 404, 429, 500].map(
      (status) =>
        [
          status,
          'x',
          503,
          'The scanner of uploads did not respond within 1 seconds. Nothing was stored.',
        ] as const,
    ),
  ]
  for (const [status, body, expected, detail] of cases) {
    response = [status, body]
    const problem = parseProblem(await (await post(server, 'x')).text())
    expect([status, problem.status, problem.detail]).toEqual([status, expected, detail])
  }
  response = [201, 'ignored']
  expect((await post(server, 'x')).status).toBe(201)
})

test('SC3 a 2xx before the scanner has the whole file is no verdict, and an early refusal is one', async () => {
  let status = 200
  const scanner = await listen((_, response) => void response.writeHead(status).end('Worm'))
  onTestFinished(() => scanner[Symbol.asyncDispose]())
  const { server } = await start(`${scanner.url}/scan`, { MEDIABUCKET_SCAN_TIMEOUT: '1s' })
  const large = 'x'.repeat(30_000_000)
  await expectProblem(await post(server, large), 503, 'scanner-unavailable')
  status = 422
  const { detail } = await expectProblem(await post(server, large), 422, 'file-refused')
  expect(detail).toBe('The scanner refuses the file: Worm.')
})
