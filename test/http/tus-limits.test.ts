import { randomBytes } from 'node:crypto'
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { bucketWith } from '../harness/bucket.ts'
import { runHere } from '../harness/commands.ts'
import { expectProblem } from '../harness/problem.ts'
import { responseOf, sendRaw } from '../harness/raw-http.ts'
import { countStored } from '../harness/resources.ts'
import { startServer, type TestServer } from '../harness/server.ts'
import { makeToken } from '../harness/token.ts'
import { checksumOf, chunkType, metadataOf, tusOf } from '../harness/tus.ts'

let server: TestServer
let tus: ReturnType<typeof tusOf>
beforeAll(async () => {
  server = await startServer({ MEDIABUCKET_MAX_FILE_SIZE: '100kB' })
  tus = tusOf(server)
})
afterAll(() => server[Symbol.asyncDispose]())

const create = (headers: Record<string, string>) => tus.send('POST', '/api/uploads', headers)
const uploads = () => readdir(join(server.data, 'uploads'))

describe('R12 the length', () => {
  test.each(['-1', '1e308', 'NaN', '5abc', '', '+5', '05', '5.0', '0x5', '9007199254740993', 'Infinity'])(
    'that is not a plain integer receives a 400 problem: %j',
    async (length) => {
      await expectProblem(await create({ 'upload-length': length }), 400, 'upload-malformed')
    },
  )

  test.each([
    {},
    { 'upload-length': '5', 'upload-defer-length': '1' },
    { 'upload-defer-length': '2' },
    { 'upload-length': '5', 'upload-concat': 'partial' },
    { 'upload-length': '5', 'upload-concat': 'final;/api/uploads/a /api/uploads/b' },
  ])(
    'that is missing, both declared and deferred, or of an unsupported extension receives a 400 problem: %j',
    async (headers) => {
      await expectProblem(await create(headers), 400, 'upload-malformed')
    },
  )

  test('above the limit receives a 413 problem, declared at creation or later', async () => {
    await expectProblem(await create({ 'upload-length': '100001' }), 413, 'file-too-large')
    expect((await create({ 'upload-length': '100000' })).status).toBe(201)
    const url = await tus.create({ 'upload-defer-length': '1' })
    const declared = await tus.sendChunk(url, 0, 'x', { 'upload-length': '100001' })
    await expectProblem(declared, 413, 'file-too-large')
    expect(await tus.offset(url)).toBe(0)
  })

  test.each([true, false])(
    'exceeded by a body receives a 413 problem and creates no item (chunked: %s)',
    async (chunked) => {
      const before = await countStored(server)
      const body = (length: number) =>
        chunked ? new Blob([randomBytes(length)]).stream() : randomBytes(length)
      const url = await tus.createWithLength(10)
      await expectProblem(await tus.sendChunk(url, 0, body(11)), 413, 'file-too-large')
      const deferred = await tus.create({ 'upload-defer-length': '1' })
      await expectProblem(await tus.sendChunk(deferred, 0, body(100_001)), 413, 'file-too-large')
      expect(await tus.offset(deferred)).toBe(0)
      expect(await countStored(server)).toEqual(before)
      expect((await tus.sendChunk(url, 0, body(10))).headers.get('content-location')).not.toBeNull()
    },
  )
})

test('R7, R12 a finished upload takes no more bytes, and still compares a checksum', async () => {
  const url = await tus.createWithLength(4)
  expect((await tus.sendChunk(url, 0, 'abcd')).status).toBe(204)
  for (const more of [new Blob(['e']).stream(), 'e'])
    await expectProblem(await tus.sendChunk(url, 4, more), 413, 'file-too-large')
  const wrong = { 'upload-checksum': checksumOf('sha1', 'e') }
  await expectProblem(await tus.sendChunk(url, 4, '', wrong), 460, 'checksum-mismatch')
  expect((await tus.sendChunk(url, 4, '', { 'upload-checksum': checksumOf('sha1', '') })).status).toBe(204)
})

test('R12 an upload serves no bytes: GET receives a 405 problem, before and after completion', async () => {
  const url = await tus.createWithLength(5)
  for (const offset of [0, 3]) {
    const response = await tus.send('GET', url, {})
    expect(response.headers.get('allow')).toBe('DELETE, HEAD, OPTIONS, PATCH, POST')
    expect(response.headers.get('tus-resumable')).toBe('1.0.0')
    await expectProblem(response, 405, 'method-not-allowed')
    await tus.sendChunk(url, offset, offset === 0 ? 'who' : 'le')
  }
  await expectProblem(await tus.send('GET', url, {}), 405, 'method-not-allowed')
})

describe('R10 an upload of another bucket', () => {
  test('receives the same responses as an unknown one, and does not change', async () => {
    const { tus: stranger } = await bucketWith(server)
    const url = await tus.createWithLength(10)
    await tus.sendChunk(url, 0, 'abc')
    const never = '/api/uploads/0123456789abcdefghjkmnpqrs'
    const bodyOf = async (response: Response) => {
      const problem = await expectProblem(response, 404, 'upload-unknown')
      return { ...problem, instance: '' }
    }
    expect(await bodyOf(await stranger.sendChunk(url, 3, 'd'))).toEqual(
      await bodyOf(await stranger.sendChunk(never, 3, 'd')),
    )
    expect(await bodyOf(await stranger.terminate(url))).toEqual(await bodyOf(await stranger.terminate(never)))
    const [head, unknown] = [await stranger.head(url), await stranger.head(never)]
    expect([head.status, head.headers.get('upload-offset')]).toEqual([404, null])
    expect(head.headers.get('content-length')).toBe(unknown.headers.get('content-length'))
    expect(await tus.offset(url)).toBe(3)
  })

  test('of a revoked token receives a 401 problem from the next request on', async () => {
    const { tus: revoked, tokenId, name } = await bucketWith(server)
    const url = await revoked.createWithLength(10)
    expect((await revoked.sendChunk(url, 0, 'abc')).status).toBe(204)
    await runHere(server.data, 'token revoke', tokenId)
    await expectProblem(await revoked.sendChunk(url, 3, 'd'), 401, 'token-revoked')
    expect((await revoked.head(url)).status).toBe(401)
    const { authorization } = await makeToken(server, '--bucket', name)
    expect(await tusOf(server, authorization).offset(url)).toBe(3)
  })

  test('requires media:write for every request', async () => {
    const { authorization } = await makeToken(server, '--bucket', 'default', '--scope', 'media:read')
    const reader = tusOf(server, authorization)
    const url = await tus.createWithLength(10)
    await expectProblem(
      await reader.send('POST', '/api/uploads', { 'upload-length': '1' }),
      403,
      'scope-missing',
    )
    await expectProblem(await reader.sendChunk(url, 0, 'a'), 403, 'scope-missing')
    await expectProblem(await reader.terminate(url), 403, 'scope-missing')
    expect((await reader.head(url)).status).toBe(403)
  })
})

test.each([
  '..%2f..%2fcatalog.db',
  '%2e%2e',
  '%00',
  'a%00b',
  '..%5cx',
  'x'.repeat(5_000),
  '__proto__',
  'lock.db',
])('R10 a malformed id gets a 404 problem and reaches no file: %s', async (id) => {
  // The service creates the ballast in the background.
  const names = async () => (await readdir(server.data)).filter((name) => name !== 'catalog.db-ballast')
  const before = [await uploads(), await names()]
  const head = `Host: x\r\nConnection: close\r\nAuthorization: Bearer ${server.token}\r\nTus-Resumable: 1.0.0\r\n`
  const chunk = `Content-Type: ${chunkType}\r\nUpload-Offset: 0\r\nContent-Length: 1\r\n\r\nx`
  const raw = async (text: string) => responseOf(await sendRaw(server.url, text))
  const patch = await raw(`PATCH /api/uploads/${id} HTTP/1.1\r\n${head}${chunk}`)
  await expectProblem(patch, 404, 'upload-unknown')
  expect((await raw(`DELETE /api/uploads/${id} HTTP/1.1\r\n${head}\r\n`)).status).toBe(404)
  expect([await uploads(), await names()]).toEqual(before)
})

describe('R11 metadata', () => {
  test.each([
    'filename',
    'a b c',
    'a !!!',
    'a YQ==,a YQ==',
    'é YQ==',
    ',',
    '__proto__ YQ==',
    'constructor YQ==',
  ])('malformed or not: nothing breaks on %j', async (metadata) => {
    const head = `POST /api/uploads HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAuthorization: Bearer ${server.token}\r\n`
    const more = `Tus-Resumable: 1.0.0\r\nUpload-Length: 5\r\nUpload-Metadata: ${metadata}\r\nContent-Length: 0\r\n\r\n`
    const response = responseOf(await sendRaw(server.url, head + more))
    if (metadata === 'filename' || metadata === ',') expect(response.status).toBe(201)
    else await expectProblem(response, 400, 'upload-malformed')
    expect(({} as Record<string, unknown>)['a']).toBeUndefined()
  })

  test('the file name is sanitised as in other uploads', async () => {
    const url = await tus.createWithLength(1, {
      'upload-metadata': metadataOf({ filename: '../a\r\nb\u202e.txt', filetype: 'text/html' }),
    })
    const last = await tus.sendChunk(url, 0, 'x')
    const item = await server.request(new URL(last.headers.get('content-location') ?? '').pathname)
    expect(await item.json()).toMatchObject({ filename: 'ab.txt', content_type: 'application/octet-stream' })
  })
})
