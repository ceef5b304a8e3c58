import { createHash, randomBytes } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { expectProblem } from '../harness/problem.ts'
import { countStored } from '../harness/resources.ts'
import { startServer, type TestServer } from '../harness/server.ts'
import { chunkType, itemOf, metadataOf, tusHeaders, tusOf } from '../harness/tus.ts'
import { readPage } from '../harness/wire.ts'

let server: TestServer
let tus: ReturnType<typeof tusOf>
beforeAll(async () => {
  server = await startServer({ MEDIABUCKET_MAX_FILE_SIZE: '1MB' })
  tus = tusOf(server)
})
afterAll(() => server[Symbol.asyncDispose]())

const sha256 = (bytes: Uint8Array) => createHash('sha256').update(bytes).digest('hex')

describe('R1 creation', () => {
  test('receives 201 with an absolute Location under the base URL, with any Host', async () => {
    const evil = { host: 'evil.example', 'x-forwarded-host': 'evil.example', forwarded: 'host=evil.example' }
    const response = await tus.send('POST', '/api/uploads', { 'upload-length': '100', ...evil })
    expect([response.status, await response.text()]).toEqual([201, ''])
    expect(tusHeaders(response)).toEqual({
      'tus-resumable': '1.0.0',
      location: expect.stringMatching(new RegExp(`^${server.url}/api/uploads/[0-9a-z]{26}$`)),
      'upload-expires': expect.stringMatching(/ GMT$/),
      'cache-control': 'no-store',
    })
  })

  test('with the first chunk, and with the complete file', async () => {
    const bytes = randomBytes(100)
    const create = (body: Uint8Array<ArrayBuffer>) =>
      tus.send('POST', '/api/uploads/', { 'upload-length': '100', 'content-type': chunkType }, body)
    const first = await create(bytes.subarray(0, 40))
    expect([first.status, first.headers.get('upload-offset')]).toEqual([201, '40'])
    const whole = await create(bytes)
    expect([whole.status, whole.headers.get('upload-offset')]).toEqual([201, '100'])
    expect(whole.headers.get('location')).toContain('/api/uploads/')
    expect(await itemOf(server, whole)).toMatchObject({ size: 100, sha256: sha256(bytes) })
  })

  test('of an empty file creates its item at once', async () => {
    const response = await tus.send('POST', '/api/uploads', { 'upload-length': '0' })
    expect(response.status).toBe(201)
    expect(await itemOf(server, response)).toMatchObject({ size: 0, filename: null })
    const { pathname } = new URL(response.headers.get('location') ?? '')
    expect(tusHeaders(await tus.head(pathname))).toMatchObject({ 'upload-offset': '0', 'upload-length': '0' })
  })

  test('with a deferred length', async () => {
    const url = await tus.create({ 'upload-defer-length': '1' })
    expect(tusHeaders(await tus.head(url))).toMatchObject({
      'upload-defer-length': '1',
      'upload-offset': '0',
    })
    await tus.sendChunk(url, 0, 'abc')
    const bad = await tus.sendChunk(url, 3, 'd', { 'upload-length': '2' })
    await expectProblem(bad, 400, 'upload-malformed')
    expect((await tus.sendChunk(url, 3, 'd', { 'upload-length': '6' })).headers.get('upload-offset')).toBe(
      '4',
    )
    const headers = tusHeaders(await tus.head(url))
    expect(headers).toMatchObject({ 'upload-length': '6', 'upload-offset': '4' })
    expect(headers).not.toHaveProperty('upload-defer-length')
    await expectProblem(await tus.sendChunk(url, 4, 'e', { 'upload-length': '7' }), 400, 'upload-malformed')
    expect(await itemOf(server, await tus.sendChunk(url, 4, 'ef'))).toMatchObject({ size: 6 })
  })

  test('with a length that is declared after the last byte', async () => {
    const url = await tus.create({ 'upload-defer-length': '1' })
    await tus.sendChunk(url, 0, 'abc')
    expect(await itemOf(server, await tus.sendChunk(url, 3, '', { 'upload-length': '3' }))).toMatchObject({
      size: 3,
    })
  })

  test('R11 stores the metadata as sent and uses its filename and filetype', async () => {
    const pairs = { filename: '../../Übersicht.csv', filetype: 'text/csv' }
    const metadata = `${metadataOf({ filename: pairs.filename, filetype: pairs.filetype })},empty,also `
    const url = await tus.createWithLength(3, { 'upload-metadata': metadata.trimEnd() })
    expect((await tus.head(url)).headers.get('upload-metadata')).toBe(metadata.trimEnd())
    const item = await itemOf(server, await tus.sendChunk(url, 0, 'a,b'))
    expect(item).toMatchObject({ filename: 'Übersicht.csv', content_type: 'text/csv' })
    expect(item.url).toMatch(/\.csv$/)
  })

  test('R11, U8 stores a name, a path and a type without U+0000', async () => {
    const metadata = metadataOf({ filename: 'b\0.csv', filetype: 'text/csv\0', relativePath: 'a\0/b.csv' })
    const url = await tus.createWithLength(3, { 'upload-metadata': metadata })
    expect((await tus.head(url)).headers.get('upload-metadata')).toBe(metadata)
    const item = await itemOf(server, await tus.sendChunk(url, 0, 'a,b'))
    expect(item).toMatchObject({ filename: 'b.csv', path: 'a/b.csv', content_type: 'text/csv' })
  })
})

describe('R2 the version', () => {
  test('is required in every request and sent in every response', async () => {
    const url = await tus.createWithLength(10)
    for (const sent of ['', '0.2.2', '1.0.0, 1.0.0']) {
      const responses = [
        await tus.send('POST', '/api/uploads', { 'upload-length': '1', 'tus-resumable': sent }),
        await tus.send('PATCH', url, { 'tus-resumable': sent, 'upload-offset': '0' }, 'x'),
        await tus.send('DELETE', url, { 'tus-resumable': sent }),
      ]
      for (const response of responses) {
        expect(tusHeaders(response)).toMatchObject({ 'tus-resumable': '1.0.0', 'tus-version': '1.0.0' })
        await expectProblem(response, 412, 'upload-version-unsupported')
      }
    }
    expect(await tus.offset(url)).toBe(0)
    const refused = await fetch(`${server.url}${url}`, { method: 'PATCH' })
    expect([refused.status, refused.headers.get('tus-resumable')]).toEqual([401, '1.0.0'])
  })

  test.each(['/api/uploads', '/api/uploads/0123456789abcdefghjkmnpqrs'])(
    'OPTIONS %s returns version, extensions and limits, without a token',
    async (url) => {
      const response = await fetch(`${server.url}${url}`, { method: 'OPTIONS' })
      expect(response.status).toBe(204)
      expect(tusHeaders(response)).toEqual({
        'tus-resumable': '1.0.0',
        'tus-version': '1.0.0',
        'tus-extension':
          'creation,creation-with-upload,creation-defer-length,expiration,termination,checksum',
        'tus-max-size': '1000000',
        'tus-checksum-algorithm': 'sha1,sha256',
      })
      expect(response.headers.get('access-control-allow-origin')).toBeNull()
    },
  )
})

test('R3 HEAD returns offset and length, not cacheable', async () => {
  const url = await tus.createWithLength(10)
  await tus.sendChunk(url, 0, 'abcd')
  const response = await tus.head(url)
  expect([response.status, tusHeaders(response)]).toEqual([
    200,
    {
      'tus-resumable': '1.0.0',
      'upload-offset': '4',
      'upload-length': '10',
      'upload-expires': expect.stringMatching(/ GMT$/),
      'cache-control': 'no-store',
    },
  ])
})

describe('R4 chunks', () => {
  test('receive 204 with the new offset and form the complete file', async () => {
    const bytes = randomBytes(10_000)
    const url = await tus.createWithLength(bytes.length)
    for (let offset = 0; offset < 9_000; offset += 3_000) {
      const response = await tus.sendChunk(url, offset, bytes.subarray(offset, offset + 3_000))
      expect([response.status, response.headers.get('upload-offset')]).toEqual([204, `${offset + 3_000}`])
      expect(response.headers.get('content-location')).toBeNull()
    }
    const item = await itemOf(server, await tus.sendChunk(url, 9_000, bytes.subarray(9_000)))
    expect(item).toMatchObject({ size: 10_000, sha256: sha256(bytes) })
    expect(Buffer.from(await (await fetch(item.url)).arrayBuffer())).toEqual(bytes)
  })

  test.each([0, 3, 5, 10, 11, 2 ** 53 - 1])(
    'at the wrong offset %d receive a 409 problem',
    async (offset) => {
      const url = await tus.createWithLength(10)
      await tus.sendChunk(url, 0, 'abcd')
      await expectProblem(await tus.sendChunk(url, offset, 'e'), 409, 'upload-offset-conflict')
      expect(await tus.offset(url)).toBe(4)
    },
  )

  test.each(['-1', '+4', '04', '4.0', '1e0', 'x', ''])(
    'with the malformed offset %j receive a 400 problem',
    async (sent) => {
      const url = await tus.createWithLength(10)
      await tus.sendChunk(url, 0, 'abcd')
      await expectProblem(
        await tus.sendChunk(url, 0, 'e', { 'upload-offset': sent }),
        400,
        'upload-malformed',
      )
      expect(await tus.offset(url)).toBe(4)
    },
  )

  test('without an offset receive a 400 problem, with another content type a 415 problem', async () => {
    const url = await tus.createWithLength(10)
    const bare = await tus.send('PATCH', url, { 'content-type': chunkType }, 'x')
    await expectProblem(bare, 400, 'upload-malformed')
    for (const type of ['application/octet-stream', 'text/plain']) {
      const response = await tus.sendChunk(url, 0, 'x', { 'content-type': type })
      await expectProblem(response, 415, 'upload-type-unsupported')
    }
    const coded = await tus.sendChunk(url, 0, 'x', { 'content-encoding': 'gzip' })
    await expectProblem(coded, 415, 'content-coding-unsupported')
    expect(await tus.offset(url)).toBe(0)
  })

  test('sent at the same time do not mix', async () => {
    const before = await countStored(server)
    const url = await tus.createWithLength(400_000)
    const bodies = [Buffer.alloc(400_000, 'a'), Buffer.alloc(400_000, 'b')]
    const responses = await Promise.all(bodies.map((body) => tus.sendChunk(url, 0, body)))
    expect(responses.map(({ status }) => status).sort()).toEqual([204, 409])
    const stored = responses.find(({ status }) => status === 204)
    if (!stored) throw new Error('no chunk was stored')
    expect(bodies.map(sha256)).toContain((await itemOf(server, stored)).sha256)
    expect((await countStored(server)).total).toBe(before.total + 1)
  })
})

describe('R5 the end', () => {
  test('lists the item before a response names it, and every later response names the same item', async () => {
    const url = await tus.createWithLength(5)
    const last = await tus.sendChunk(url, 0, 'whole')
    const { total, last_page } = await readPage(await server.request('/api/media'))
    const item = await itemOf(server, last)
    const page = await readPage(await server.request(`/api/media?page=${last_page}`))
    expect(page.data.at(-1)).toBe(item.url)
    const again = [await tus.head(url), await tus.sendChunk(url, 5, ''), await tus.head(url)]
    for (const response of again) {
      expect((await itemOf(server, response)).id).toBe(item.id)
      expect(response.headers.get('upload-offset')).toBe('5')
    }
    expect((await readPage(await server.request('/api/media'))).total).toBe(total)
  })

  test('is still reported after the item has been deleted', async () => {
    const url = await tus.createWithLength(5)
    const { id } = await itemOf(server, await tus.sendChunk(url, 0, 'whole'))
    await server.request(`/api/media/${id}`, { method: 'DELETE' })
    expect((await tus.head(url)).headers.get('content-location')).toBe(`${server.url}/api/media/${id}`)
  })
})
