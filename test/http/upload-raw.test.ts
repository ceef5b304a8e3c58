import { execFile } from 'node:child_process'
import { createHash, randomBytes } from 'node:crypto'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { beforeAll, describe, expect, test } from 'vitest'
import { expectProblem } from '../harness/problem.ts'
import { responseOf, sendRaw } from '../harness/raw-http.ts'
import { countStored } from '../harness/resources.ts'
import type { SharedServer } from '../harness/server.ts'
import { sharedServer } from '../harness/shared-server.ts'
import { parseItem, readItem, readPage } from '../harness/wire.ts'

let server: SharedServer
beforeAll(async () => {
  server = await sharedServer()
})

const sha256 = (bytes: string | Uint8Array) => createHash('sha256').update(bytes).digest('hex')
const post = (body: string | Uint8Array<ArrayBuffer>, headers: Record<string, string> = {}) =>
  server.request('/api/media', { method: 'POST', body, headers })

/** The bytes of a POST with exactly these header lines, which may hold any byte. */
const postBytes = (lines: string, body: string) =>
  Buffer.from(
    `POST /api/media HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${server.token}\r\nConnection: close\r\n${lines}\r\n\r\n${body}`,
    'latin1',
  )

test.each(['/api/media', '/api/media/', '/v1/media', '/v1/media/'])(
  'U3, U4 a raw body posted to %s is stored as one file: 201 with the media object and its Location',
  async (path) => {
    const bytes = randomBytes(70_000)
    const response = await server.request(path, {
      method: 'POST',
      body: bytes,
      headers: { 'content-type': 'video/x-unknown', 'content-disposition': 'attachment; filename="a.xyz"' },
    })
    expect(response.status).toBe(201)
    const item = await readItem(response)
    expect(response.headers.get('location')).toBe(`${server.url}/api/media/${item.id}`)
    expect(item).toMatchObject({ filename: 'a.xyz', size: 70_000, sha256: sha256(bytes) })
    expect(Buffer.from(await (await fetch(item.url)).arrayBuffer())).toEqual(bytes)
    expect((await readPage(await server.request('/api/media'))).data).toContain(item.url)
  },
)

test.each([
  ['application/json', '{"a": [1, 2'],
  ['application/json', ''],
  ['application/problem+json', '{"a":1}'],
  ['text/plain; charset=iso-8859-1', 'text'],
  ['multipart/mixed; boundary=b', '--b\r\n\r\nx\r\n--b--\r\n'],
  ['application/x-www-form-urlencoded', 'a=1&b=2'],
  ['text/html', '<p>'],
])('U3 bytes of %s are kept as they are: %s', async (type, body) => {
  const item = await readItem(await post(body, { 'content-type': type }))
  expect(item).toMatchObject({ filename: null, size: body.length, sha256: sha256(body) })
  expect(await (await fetch(item.url)).text()).toBe(body)
})

test('U3, U5 no content type and no body is an empty file', async () => {
  const response = responseOf(await sendRaw(server.url, postBytes('Content-Length: 0', '')))
  expect(response.status).toBe(201)
  expect(await readItem(response)).toMatchObject({
    filename: null,
    size: 0,
    content_type: 'application/octet-stream',
  })
  expect((await server.request('/api/media', { method: 'POST' })).status).toBe(201)
})

test('U3 a chunked body is one file', async () => {
  const body = '1\r\na\r\n5;x=y\r\nbcdef\r\n0\r\nTrailer: x\r\n\r\n'
  const response = responseOf(await sendRaw(server.url, postBytes('Transfer-Encoding: chunked', body)))
  expect(await readItem(response)).toMatchObject({ size: 6, sha256: sha256('abcdef') })
})

describe('U3, U8 the filename of Content-Disposition is stored', () => {
  test.each([
    ['attachment; filename=plain.txt', 'plain.txt'],
    ['attachment; filename="a b;c.txt"', 'a b;c.txt'],
    ['inline;filename="quoted \\"name\\".txt"', 'quoted "name".txt'],
    ['ATTACHMENT; FileName = "case.txt"', 'case.txt'],
    ["attachment; filename*=UTF-8''na%C3%AFve%20%E2%82%AC.txt", 'naïve €.txt'],
    ["attachment; filename*=UTF-8''star.txt; filename=plain.txt", 'star.txt'],
    ["attachment; filename=plain.txt; filename*=utf-8'de'star.txt", 'star.txt'],
    ["attachment; filename*=UTF-8''%C3%83%C2%A9.txt", 'Ã©.txt'],
    ["attachment; filename*=ISO-8859-1''%E9.txt", 'é.txt'],
    [`attachment; filename="${Buffer.from('naïve €.txt').toString('latin1')}"`, 'naïve €.txt'],
    ['attachment; filename="latin \xe9.txt"', 'latin é.txt'],
    ['attachment; filename="../../etc/passwd"', 'passwd'],
    ['attachment; filename="C:\\dir\\win.txt"', 'win.txt'],
    ["attachment; filename*=UTF-8''a%2Fb%5Cc%00%0D%0Ad.txt", 'cd.txt'],
    ["attachment; filename*=UTF-8''a%E2%80%AEgnp.exe", 'agnp.exe'],
    ['attachment; filename=".."', null],
    ['attachment; filename=""', null],
    ['attachment', null],
    ['attachment; size=3;', null],
  ])('%s', async (header, filename) => {
    const bytes = postBytes(`Content-Length: 1\r\nContent-Disposition: ${header}`, 'x')
    const response = responseOf(await sendRaw(server.url, bytes))
    expect(response.status).toBe(201)
    expect((await readItem(response)).filename).toBe(filename)
  })

  test.each([
    'attachment; filename="open',
    'attachment; filename=two words.txt',
    'attachment; filename=a; filename=b',
    'attachment; filename',
    'filename="a.txt"',
    "attachment; filename*=UTF-8''%ZZ.txt",
    "attachment; filename*=UTF-8''%ff.txt",
    'attachment; filename*=a.txt; filename=a.txt',
    '"',
    '',
  ])('and a malformed one is refused with 400: %s', async (header) => {
    const before = await countStored(server)
    const bytes = postBytes(`Content-Length: 1\r\nContent-Disposition: ${header}`, 'x')
    await expectProblem(responseOf(await sendRaw(server.url, bytes)), 400, 'filename-malformed')
    expect(await countStored(server)).toEqual(before)
  })
})

test('U9 a body with a Content-Encoding is refused with 415', async () => {
  const before = await countStored(server)
  for (const coding of ['gzip', 'identity', 'br, gzip'])
    for (const type of ['text/plain', 'multipart/form-data; boundary=b']) {
      const headers = { 'content-type': type, 'content-encoding': coding }
      await expectProblem(await post('x', headers), 415, 'content-coding-unsupported')
    }
  expect(await countStored(server)).toEqual(before)
})

test('U9 a part of a file, as programs send it that upload in parts by other protocols, is refused', async () => {
  const before = await countStored(server)
  for (const headers of [
    { 'content-range': 'bytes 0-0/3' },
    { 'tus-resumable': '1.0.0', 'upload-length': '3' },
  ])
    for (const type of ['text/plain', 'multipart/form-data; boundary=b'])
      await expectProblem(await post('x', { 'content-type': type, ...headers }), 400, 'request-malformed')
  expect(await countStored(server)).toEqual(before)
})

describe('U3, U7 raw bodies of curl', () => {
  // The first byte prevents that random bytes form a signature.
  const bytes = Buffer.concat([Buffer.of(0), randomBytes(200_000)])
  async function curl(...args: string[]) {
    const path = join(server.data, 'upload.txt')
    await writeFile(path, bytes)
    const common = ['-sS', '-X', 'POST', '-H', `Authorization: Bearer ${server.token}`]
    const sent = promisify(execFile)('curl', [...common, ...args, `${server.url}/api/media`], {
      cwd: server.data,
    })
    // It may end before it has read all.
    if (args.includes('-')) sent.child.stdin?.on('error', () => undefined).end(bytes)
    return parseItem((await sent).stdout)
  }
  const named = ['-H', 'Content-Disposition: attachment; filename=upload.txt']

  test.each([
    ['--data-binary, whose default type counts as undeclared', ['--data-binary', '@upload.txt', ...named]],
    ['-T with a file', ['-T', 'upload.txt', ...named]],
    ['-T - from a pipe, chunked', ['-T', '-', ...named]],
    ['-T - without Expect', ['-T', '-', '-H', 'Expect:', ...named]],
  ])('%s', async (_, args) => {
    expect(await curl(...args)).toMatchObject({
      filename: 'upload.txt',
      content_type: 'text/plain',
      size: bytes.length,
      sha256: sha256(bytes),
    })
  })

  test('a declared type that matches the extension', async () => {
    const args = ['--data-binary', '@upload.txt', '-H', 'Content-Type: text/plain', ...named]
    expect((await curl(...args)).content_type).toBe('text/plain')
  })
})
