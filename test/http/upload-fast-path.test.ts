import { readdir } from 'node:fs/promises'
import { connect } from 'node:net'
import { join } from 'node:path'
import { Type } from 'typebox'
import { Value } from 'typebox/value'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { newToken } from '../../packages/server/src/core/token-format.ts'
import { runHere } from '../harness/commands.ts'
import { quarters } from '../harness/pictures.ts'
import { sendRaw } from '../harness/raw-http.ts'
import { startServer, type TestServer } from '../harness/server.ts'
import { makeToken } from '../harness/token.ts'
import { until } from '../harness/until.ts'
import { upload } from '../harness/upload.ts'
import { readPage } from '../harness/wire.ts'

const origin = 'https://app.example.org'
let server: TestServer
let png: string
/** Authorization headers by the words that the requests below use. */
let tokens: Readonly<Record<string, string>>
beforeAll(async () => {
  server = await startServer({ MEDIABUCKET_CORS_ORIGINS: origin, MEDIABUCKET_MAX_FILE_SIZE: '50000' })
  png = (await quarters(60, 40).png().toBuffer()).toString('latin1')
  const full = await makeToken(server, '--bucket', 'full')
  await runHere(server.data, 'bucket set', 'full', '--max-items', '0')
  const small = await makeToken(server, '--bucket', 'small')
  await runHere(server.data, 'bucket set', 'small', '--max-bytes', '10')
  tokens = {
    TOKEN: `Authorization: Bearer ${server.token}`,
    FULL: `Authorization: ${full.authorization}`,
    SMALL: `Authorization: ${small.authorization}`,
    'READ ONLY': `Authorization: ${(await makeToken(server, '--bucket', 'full', '--scope', 'media:read')).authorization}`,
    UNKNOWN: `Authorization: Bearer ${newToken()}`,
  }
})
afterAll(() => server[Symbol.asyncDispose]())

/** Each byte of the text is one byte of the request. */
const latin1 = (text: string) => Buffer.from(text, 'latin1')

const head = (path: string, headers: readonly string[]) =>
  [`POST ${path} HTTP/1.1`, ...headers.map((header) => tokens[header] ?? header), '', ''].join('\r\n')

/** The response, without what differs between two items and two problems. */
async function send(bytes: string) {
  const { status, headers, body } = await sendRaw(server.url, latin1(bytes))
  const same = (text: string) =>
    text
      .replaceAll(/[0-9a-z]{28}/g, 'ID')
      .replace(/"instance":"[^"]+"/, '')
      .replace(/"created_at":"[^"]+"/, '')
  return {
    status,
    headers: [...headers]
      .filter(([name]) => name !== 'date')
      .map(([name, value]) => [name, same(value)])
      .toSorted(),
    body: same(body),
  }
}

/** The same request twice: with a length, and in chunks, which takes the path of the framework. */
async function sendBoth(path: string, body: string, ...headers: string[]) {
  const closing = [...headers, 'Connection: close']
  return {
    fast: await send(head(path, [...closing, `Content-Length: ${body.length}`]) + body),
    framework: await send(
      head(path, [...closing, 'Transfer-Encoding: chunked']) +
        (body && `${body.length.toString(16)}\r\n${body}\r\n`) +
        '0\r\n\r\n',
    ),
  }
}

const plain = ['Host: h', 'TOKEN']
const named = (name: string) => `Content-Disposition: attachment; filename="${name}"`
const requests: readonly (readonly [string, string, ...string[]])[] = [
  ...['/api/media', '/api/media/', '/v1/media', '/v1/media/', '/api/media?x=y', '/api/%6dedia'].map(
    (path) => [path, 'text', ...plain] as const,
  ),
  ['/api/media', '', ...plain],
  ['/api/media', 'hello', ...plain, 'Content-Type: text/plain', named('a.txt')],
  ['/api/media', 'hello', ...plain, 'Content-Type: text/plain', named('\xc3\xa4 \xe2\x82\xac.txt')],
  ['/api/media', 'hello', ...plain, "Content-Disposition: inline; filename*=UTF-8''%e2%82%ac.md"],
  ['/api/media', 'hello', ...plain, "Content-Disposition: inline; filename*=UTF-8''%zz"],
  ['/api/media', 'hello', ...plain, 'Content-Disposition: ;'],
  ['/api/media', '{"a":1}', ...plain, 'Content-Type: application/json'],
  ['/api/media', '<p>', ...plain, 'Content-Type: text/html', named('a.html')],
  ['/api/media', 'PNG', ...plain, 'Content-Type: text/plain'],
  ['/api/media', 'x'.repeat(50_000), ...plain],
  ['/api/media', 'x', ...plain, 'Content-Type: multipart/form-data'],
  ['/api/media', 'x', ...plain, 'Content-Type: text/plain', 'Content-Type: text/html'],
  ...[
    'nonsense',
    '',
    'a/b',
    'a/b;',
    'a/b; c',
    'a/b ;c=d',
    ' a/b',
    'a/b c',
    'a/b/c',
    'a/"b"',
    'A/B; c="d"',
  ].map((type) => ['/api/media', 'x', ...plain, `Content-Type: ${type}`] as const),
  ['/api/media', 'x', ...plain, 'Content-Encoding: gzip'],
  ['/api/media', 'x', ...plain, 'Idempotency-Key: "'],
  ['/api/media', 'x', ...plain, 'Idempotency-Key: "a"', 'Idempotency-Key: "b"'],
  ['/api/media', 'x', ...plain, 'Expect: something'],
  ['/api/media', 'x', ...plain, 'Service-Worker: script'],
  ['/api/media', 'x', ...plain, `Origin: ${origin}`],
  ['/api/media', 'x', ...plain, 'Origin: https://evil.example.org'],
  ['/api/media', 'x', ...plain, `Origin: ${origin}`, 'Access-Control-Request-Method: POST'],
  ['/api/media', 'x', ...plain, 'Host: another'],
  ['/api/media', 'x', 'TOKEN'],
  ['/api/media', 'x', ...plain, 'TOKEN'],
  ['/api/media', 'x', 'Host: h'],
  ['/api/media', 'x', 'Host: h', `Origin: ${origin}`],
  ['/api/media', 'x', 'Host: h', 'UNKNOWN'],
  ['/api/media', 'x', 'Host: h', 'UNKNOWN', 'Idempotency-Key: "'],
  ['/api/media', 'x', 'Host: h', 'READ ONLY', named('a.txt')],
  ['/api/media', 'x', 'Host: h', 'FULL'],
  ['/api/media', 'x'.repeat(11), 'Host: h', 'SMALL'],
]

test.each(requests)(
  'U1 to U12 both paths give the same response to %s %s %s %s %s %s',
  async (path, body, ...headers) => {
    const { fast, framework } = await sendBoth(path, body === 'PNG' ? png : body, ...headers)
    expect(fast).toEqual(framework)
  },
)

const activeUploads = async () =>
  /^mediabucket_active_uploads (\d+)$/m.exec(await (await fetch(`${server.url}/metrics`)).text())?.[1]

const Id = Type.Object({ id: Type.String() })

describe('small files', () => {
  test('I1 a request with a key is repeated on either path', async () => {
    const request = (form: string) =>
      head('/api/media', [...plain, 'Idempotency-Key: both', 'Connection: close', form])
    const whole = `${request('Content-Length: 3')}abc`
    const chunked = `${request('Transfer-Encoding: chunked')}3\r\nabc\r\n0\r\n\r\n`
    const ids = []
    for (const bytes of [whole, chunked, whole]) {
      const { body } = await sendRaw(server.url, bytes)
      ids.push(Value.Parse(Id, JSON.parse(body)).id)
    }
    expect(new Set(ids).size).toBe(1)
    expect((await sendRaw(server.url, whole.replace('abc', 'abd'))).status).toBe(422)
  })

  test('U4, N1 several that arrive in one read are all stored, in their order', async () => {
    const { authorization } = await makeToken(server, '--bucket', 'ordered')
    const post = (body: string, ...more: string[]) =>
      head('/api/media', [
        'Host: h',
        `Authorization: ${authorization}`,
        `Content-Length: ${body.length}`,
        ...more,
      ]) + body
    const { status, body } = await sendRaw(
      server.url,
      `${post('first')}${post('second')}${post('third', 'Connection: close')}`,
    )
    expect([status, ...(body.match(/HTTP\/1\.1 \d+/g) ?? [])]).toEqual([
      201,
      ...Array(2).fill('HTTP/1.1 201'),
    ])
    const page = await readPage(await server.request('/api/media', { headers: { authorization } }))
    const contents = await Promise.all(page.data.map(async (url) => (await fetch(url)).text()))
    expect(contents).toEqual(['first', 'second', 'third'])
  })

  test('U10 one whose client disconnects is not stored, and its memory is released', async () => {
    const { authorization } = await makeToken(server, '--bucket', 'cut')
    const headers = { authorization }
    const port = Number(new URL(server.url).port)
    // Three times the memory for small files.
    for (let round = 0; round < 3; round += 1) {
      const sockets = Array.from({ length: 340 }, () =>
        connect(port, '127.0.0.1').on('error', () => undefined),
      )
      for (const socket of sockets)
        socket.write(
          `${head('/api/media', ['Host: h', `Authorization: ${authorization}`, 'Content-Length: 50000'])}${'x'.repeat(49_999)}`,
        )
      await until('all uploads are open', async () => (await activeUploads()) === '340')
      for (const socket of sockets) socket.destroy()
      await until('no upload is open', async () => (await activeUploads()) === '0')
    }
    expect((await readPage(await server.request('/api/media', { headers }))).total).toBe(0)
    const stored = await server.request('/api/media', { method: 'POST', body: 'x', headers })
    expect(stored.status).toBe(201)
  })

  test('S9 are stored in the catalog while many clients have begun uploads and send nothing', async () => {
    const port = Number(new URL(server.url).port)
    const sockets = Array.from({ length: 400 }, () => connect(port, '127.0.0.1').on('error', () => undefined))
    for (const socket of sockets) socket.write(head('/api/media', [...plain, 'Content-Length: 50000']))
    await until('all uploads are open', async () => (await activeUploads()) === '400')
    for (let count = 0; count < 5; count += 1) await upload(server, `small ${count}`)
    const entries = await readdir(join(server.data, 'blobs'), { recursive: true, withFileTypes: true })
    expect(entries.filter((entry) => entry.isFile()).map(({ name }) => name)).toEqual(['.identity'])
    for (const socket of sockets) socket.destroy()
    await until('no upload is open', async () => (await activeUploads()) === '0')
  })
})
