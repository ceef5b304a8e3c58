import { execFile } from 'node:child_process'
import { createHash, randomBytes } from 'node:crypto'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { beforeAll, describe, expect, test } from 'vitest'
import { temporaryDirectory } from '../harness/directory.ts'
import { fieldPart, filePart, formBytes, sendForm } from '../harness/form.ts'
import { expectProblem } from '../harness/problem.ts'
import { countOwn } from '../harness/resources.ts'
import type { SharedServer } from '../harness/server.ts'
import { sharedServer } from '../harness/shared-server.ts'
import { parseItem, readItem, readPage, readStoredItems } from '../harness/wire.ts'

let server: SharedServer
beforeAll(async () => {
  server = await sharedServer()
})

const sha256 = (bytes: Uint8Array) => createHash('sha256').update(bytes).digest('hex')
const bytesAt = async (url: string) => Buffer.from(await (await fetch(url)).arrayBuffer())

test('U1, U4 a form with one file returns 201, the media object and its Location', async () => {
  const bytes = randomBytes(100_000)
  const response = await sendForm(server, formBytes(filePart('a b.bin', bytes, 'application/octet-stream')))
  expect(response.status).toBe(201)
  const item = await readItem(response)
  expect(response.headers.get('location')).toBe(`${server.url}/api/media/${item.id}`)
  expect(item).toMatchObject({ filename: 'a b.bin', size: 100_000, sha256: sha256(bytes) })
  expect(await bytesAt(item.url)).toEqual(bytes)
})

test('U1, U4, L10 a form with many files returns and lists all of them in the order sent', async () => {
  const bodies = Array.from({ length: 40 }, (_, i) => randomBytes(i * 997))
  const before = await countOwn(server)
  const parts = bodies.map((body, i) => filePart(`${i}.bin`, body, 'application/octet-stream'))
  const response = await sendForm(server, formBytes(...parts))
  expect([response.status, response.headers.get('location')]).toEqual([201, null])
  const items = await readStoredItems(response)
  expect(items.map(({ filename }) => filename)).toEqual(bodies.map((_, i) => `${i}.bin`))
  expect(items.map((item) => item.sha256)).toEqual(bodies.map(sha256))
  expect(await countOwn(server)).toEqual({ ...before, total: before.total + 40, blobs: before.blobs + 40 })

  const urls: string[] = []
  for (let page = 1; page <= Math.ceil((before.total + 40) / 10); page += 1) {
    urls.push(...(await readPage(await server.request(`/api/media?page=${page}`))).data)
  }
  expect(urls.slice(before.total)).toEqual(items.map(({ url }) => url))
  for (const [i, { url }] of items.entries()) expect(bodies[i]?.equals(await bytesAt(url))).toBe(true)
})

test('U5 empty files are stored, alone and among others', async () => {
  const alone = await readItem(await sendForm(server, formBytes(filePart('none.txt', ''))))
  expect(alone).toMatchObject({ filename: 'none.txt', size: 0, sha256: sha256(Buffer.alloc(0)) })
  expect(await bytesAt(alone.url)).toHaveLength(0)
  const several = await sendForm(server, formBytes(filePart('a', ''), filePart('b', 'b'), filePart('c', '')))
  expect((await readStoredItems(several)).map(({ size }) => size)).toEqual([0, 1, 0])
})

test('U1 an input of a browser in which no file is chosen is no file', async () => {
  const before = await readPage(await server.request('/api/media'))
  const input = filePart('', '', 'application/octet-stream')
  const beside = await readItem(await sendForm(server, formBytes(input, filePart('a.txt', 'a'), input)))
  expect(beside).toMatchObject({ filename: 'a.txt', size: 1 })
  const field = fieldPart('note', 'x')
  for (const parts of [[input], [input, input, field]]) {
    const problem = await expectProblem(await sendForm(server, formBytes(...parts)), 400, 'form-without-file')
    expect(problem.detail).toContain('No file was chosen')
  }
  const nameless = await readItem(await sendForm(server, formBytes(filePart('', 'with bytes'), input)))
  expect(nameless).toMatchObject({ filename: null, size: 10 })
  const { total } = await readPage(await server.request('/api/media'))
  expect(total).toBe(before.total + 2)
})

test('U1 bytes that resemble a boundary are stored in their file', async () => {
  const bytes = Buffer.from('\r\n--frontie\r\n-\r\n--\r\n--front\r\r\n--frontie--\r\n\r\n')
  const { url } = await readItem(await sendForm(server, formBytes(filePart('a.txt', bytes))))
  expect(await bytesAt(url)).toEqual(bytes)
})

test('U1 preamble, epilogue and padding around the boundaries are not stored', async () => {
  const part = 'Content-Disposition: form-data; name="f"; filename="a.txt"\r\n\r\nbytes'
  const body = `ignore me\r\n--frontier \t\r\n${part}\r\n--frontier--\t\r\nand me`
  const { url } = await readItem(await sendForm(server, body))
  expect(await (await fetch(url)).text()).toBe('bytes')
})

test.each(['frontier', '"frontier"'])('U1 the boundary can be quoted: %s', async (text) => {
  const type = `Multipart/Form-Data; charset=utf-8; Boundary=${text}`
  expect((await sendForm(server, formBytes(filePart('a')), type)).status).toBe(201)
})

describe('U1 parts that are not files are ignored', () => {
  test.each([
    ['text', fieldPart('title', 'Holiday')],
    ['long text', fieldPart('title', 'x'.repeat(200_000))],
    ['JSON', fieldPart('meta', JSON.stringify({ tags: Array(2000).fill('tag') }), 'application/json')],
    ['what says it is JSON', fieldPart('meta', '{', 'application/json')],
    ['JSON with __proto__', fieldPart('meta', '{"__proto__":{"polluted":1}}', 'application/json')],
    ['__proto__', fieldPart('__proto__', 'polluted')],
    ['constructor', fieldPart('constructor', 'polluted')],
    ['toString', fieldPart('toString', 'polluted')],
  ])('%s', async (_, field) => {
    const before = await countOwn(server)
    const response = await sendForm(server, formBytes(field, filePart('a.txt', 'a'), field))
    expect(response.status).toBe(201)
    expect(await readItem(response)).toMatchObject({ filename: 'a.txt', size: 1 })
    expect(await countOwn(server)).toEqual({ ...before, total: before.total + 1, blobs: before.blobs + 1 })
  })

  test('U1 file parts can have such names', async () => {
    const parts = ['__proto__', 'constructor', 'toString'].map((name) => ({
      ...filePart('x'),
      head: `Content-Disposition: form-data; name="${name}"; filename="${name}.txt"`,
    }))
    const items = await readStoredItems(await sendForm(server, formBytes(...parts)))
    expect(items.map(({ filename }) => filename)).toEqual([
      '__proto__.txt',
      'constructor.txt',
      'toString.txt',
    ])
  })
})

test.each([
  ['a%22b.txt', 'a"b.txt'],
  ['a\\"b.txt', 'a"b.txt'],
  ['100%.txt', '100%.txt'],
  ['naïve €.txt', 'naïve €.txt'],
  ['a%0D%0ASet-Cookie: x=1.txt', 'aSet-Cookie: x=1.txt'],
  ['a\u202Egnp.exe', 'agnp.exe'],
  ['a\0b\u0007.txt', 'ab.txt'],
  ['../../x', 'x'],
  ['C:\\fakepath\\x.txt', 'x.txt'],
  ['..', null],
  ['', null],
  ['<img src=x onerror=alert(1)>', '<img src=x onerror=alert(1)>'],
  [`${'é'.repeat(5000)}.jpeg`, `${'é'.repeat(125)}.jpeg`],
])('U8 the name %j is kept as %j', async (sent, kept) => {
  const { filename, id } = await readItem(await sendForm(server, formBytes(filePart(sent))))
  expect(filename).toBe(kept)
  const shown = await readItem(await server.request(`/api/media/${id}`))
  expect(shown.filename).toBe(kept)
})

const disposition = 'Content-Disposition: form-data; name="file"; filename="a.txt"'
const whole = formBytes(filePart('a.txt', 'aaaa'), filePart('b.txt', 'bbbb')).toString()
const headed = (head: string) => formBytes(filePart('first'), { head, body: 'x' }).toString()

describe('U10 a malformed form is refused with 400, and nothing of it is stored', () => {
  test.each([
    ['no file', 'form-without-file', formBytes(fieldPart('a', 'b')).toString(), undefined],
    ['no part', 'form-without-file', '--frontier--\r\n', undefined],
    ['no body', 'form-without-file', '', undefined],
    ['no boundary parameter', 'form-malformed', whole, 'multipart/form-data'],
    ['an empty boundary', 'form-malformed', whole, 'multipart/form-data; boundary='],
    ['an endless boundary', 'form-malformed', whole, `multipart/form-data; boundary=${'x'.repeat(500)}`],
    ['another boundary', 'form-malformed', whole, 'multipart/form-data; boundary=other'],
    ['JSON that says it is a form', 'form-malformed', '{"a":1}', undefined],
    ['an empty part name', 'form-malformed', headed(disposition.replace('"file"', '""')), undefined],
    ['a part without a name', 'form-malformed', headed(disposition.replace('name="file"; ', '')), undefined],
    ['a part without a head', 'form-malformed', headed(''), undefined],
    ['a part without a disposition', 'form-malformed', headed('Content-Type: text/plain'), undefined],
    ['a line that is no header', 'form-malformed', headed(`${disposition}\r\nwhatever`), undefined],
    ['a bare LF in a filename', 'form-malformed', headed(disposition.replace('a.txt', 'a\nb')), undefined],
    ['an endless head', 'form-malformed', headed(`${disposition}\r\nX: ${'x'.repeat(200_000)}`), undefined],
    ['an endless preamble', 'form-malformed', `${'x'.repeat(20_000)}\r\n${whole}`, undefined],
    ['an endless epilogue', 'form-malformed', `${whole}${'x'.repeat(20_000)}`, undefined],
    ['an open quote', 'form-malformed', headed(disposition.slice(0, -1)), undefined],
    [
      'a boundary that goes on',
      'form-malformed',
      whole.replace('\r\n--frontier\r', '\r\n--frontierX\r'),
      undefined,
    ],
    ['cut in a boundary', 'upload-incomplete', whole.slice(0, -6), undefined],
    ['cut in the second file', 'upload-incomplete', whole.slice(0, -18), undefined],
    ['cut in the head of the second file', 'upload-incomplete', whole.slice(0, -60), undefined],
    ['cut in the first file', 'upload-incomplete', whole.slice(0, 108), undefined],
  ])('%s', async (_, code, body, type) => {
    const before = await countOwn(server)
    await expectProblem(await sendForm(server, body, type), 400, code)
    expect(await countOwn(server)).toEqual(before)
  })
})

test('U1, U4 the forms of curl -F are stored', async () => {
  await using directory = await temporaryDirectory()
  const path = join(directory.path, 'a "b" é.bin')
  const bytes = randomBytes(300_000)
  await writeFile(path, bytes)
  const curl = ['-sS', '-H', `Authorization: Bearer ${server.token}`, `${server.url}/api/media`]
  const { stdout } = await promisify(execFile)('curl', [
    ...curl,
    '-F',
    'note=hi',
    '-F',
    `file=@"${path.replaceAll('"', '\\"')}"`,
  ])
  expect(parseItem(stdout)).toMatchObject({ filename: 'a "b" é.bin', size: 300_000, sha256: sha256(bytes) })
})
