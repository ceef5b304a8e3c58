import { randomBytes } from 'node:crypto'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { sendRaw } from '../harness/raw-http.ts'
import { startServer, type TestServer } from '../harness/server.ts'
import { makeToken } from '../harness/token.ts'
import { tusOf } from '../harness/tus.ts'
import { until } from '../harness/until.ts'
import { upload } from '../harness/upload.ts'

let server: TestServer
beforeAll(async () => {
  server = await startServer({ MEDIABUCKET_LOG_LEVEL: 'trace' })
})
afterAll(() => server[Symbol.asyncDispose]())

const hex = (letter: string) => `%${letter.charCodeAt(0).toString(16)}`
const everyLetter = (token: string) => [...token].map(hex).join('')

/** Ways to write a token in a URL. */
const spellings: Readonly<Record<string, (token: string) => string>> = {
  'as it is': (token) => token,
  'in capitals': (token) => token.toUpperCase(),
  'its first letter encoded': (token) => `%6d${token.slice(1)}`,
  'its underscore encoded': (token) => token.replace('_', '%5F'),
  'its prefix encoded': (token) => everyLetter('mbkt_') + token.slice(5),
  'every second letter encoded': (token) =>
    [...token].map((letter, i) => (i % 2 ? hex(letter) : letter)).join(''),
  'every letter encoded': everyLetter,
  'encoded twice': (token) => encodeURIComponent(everyLetter(token)),
  'encoded three times': (token) => encodeURIComponent(encodeURIComponent(everyLetter(token))),
  'without its prefix': (token) => token.slice(5),
}

/** Request-targets that hold a secret. */
const targets: Readonly<Record<string, (secret: string) => string>> = {
  'the path': (secret) => `/${secret}`,
  'the end of a path': (secret) => `/api/media/${secret}`,
  'the name of a file': (secret) => `/media/${secret}.jpg`,
  'the middle of a path': (secret) => `/a/${secret}/b`,
  'a path that cannot be decoded': (secret) => `/media/%zz${secret}`,
  'the query of a listing': (secret) => `/api/media?token=${secret}`,
  'the query of bytes': (secret) => `/media/x?access_token=${secret}`,
  'an encoded query': (secret) => `/api/media%3Ftoken=${secret}`,
  'a fragment': (secret) => `/api/media#${secret}`,
  'the absolute form': (secret) => `http://x/${secret}?${secret}`,
  'the user of the absolute form': (secret) => `http://${secret}:${secret}@x/api/media`,
}

/** Every string in the log, decoded repeatedly until it no longer changes. */
function decoded(text: string): string {
  const next = text.replace(/%([0-7][0-9a-f])/gi, (_, code: string) =>
    String.fromCharCode(Number.parseInt(code, 16)),
  )
  return next === text ? text.toLowerCase() : decoded(next)
}

const flush = async () => {
  const mark = `/mark-${crypto.randomUUID()}`
  await fetch(server.url + mark)
  await until('what was sent is logged', () => server.log().some(({ path }) => path === mark))
}

test.each(Object.entries(spellings))('O3, A5 a token in a URL is not logged: %s', async (_name, spell) => {
  const { token, authorization } = await makeToken(server, '--bucket', 'default')
  const spelled = spell(token)
  const before = server.stderr().length
  for (const target of Object.values(targets).map((of) => of(spelled))) {
    for (const [method, headers] of [
      ['GET', `Authorization: ${authorization}\r\n`],
      ['GET', ''],
      ['POST', `Authorization: ${authorization}\r\nContent-Length: 0\r\n`],
      ['GET', `User-Agent: ${spelled} x/${spelled} ${'x'.repeat(170)}${spelled}\r\n`],
      ['GET', `X-Request-Id: ${spelled}\r\ntraceparent: 00-${spelled}-1-1\r\n`],
      ['GET', `Referer: http://x${target.replace(/^http:\/\/x/, '')}\r\n`],
      // Bytes that never become a request.
      ['GET', 'Bad : header\r\n'],
      ['G@T', ''],
    ]) {
      await sendRaw(
        server.url,
        `${method} ${target} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n${headers}\r\n`,
      )
    }
  }
  await flush()
  const log = decoded(server.stderr().slice(before))
  expect(log.split('\n').length).toBeGreaterThan(40)
  // Short substrings may occur by chance.
  for (let at = 5; at + 12 <= token.length; at += 6) expect(log).not.toContain(token.slice(at, at + 12))
})

test.each(['as it is', 'every second letter encoded', 'encoded twice'] as const)(
  'O3, A5 a JWT in a URL is not logged: %s',
  async (spelling) => {
    const part = (bytes: number) => randomBytes(bytes).toString('base64url')
    const secret = `${Buffer.from('{"alg":"RS256","kid":"1"}').toString('base64url')}.${part(90)}.${part(256)}`
    const before = server.stderr().length
    const requests = Object.values(targets).map((of) => of(spellings[spelling]?.(secret) ?? ''))
    for (const target of requests)
      await sendRaw(server.url, `GET ${target} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`)
    await flush()
    const log = decoded(server.stderr().slice(before))
    expect(log.split('\n').length).toBeGreaterThan(10)
    const lower = secret.toLowerCase()
    for (let at = 0; at + 12 <= lower.length; at += 6) expect(log).not.toContain(lower.slice(at, at + 12))
  },
)

test('O3 a redacted path still identifies its route', async () => {
  const { token } = await makeToken(server, '--bucket', 'default')
  const before = server.log().length
  await fetch(`${server.url}/api/media/${everyLetter(token)}/rest`)
  await sendRaw(
    server.url,
    `GET http://user:password@x/absolute?q=1 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`,
  )
  await fetch(`${server.url}/a%20b/%C3%BC`)
  await fetch(`${server.url}/${'a'.repeat(12_000)}`)
  await flush()
  const paths = server
    .log()
    .slice(before)
    .flatMap(({ path }) => (typeof path === 'string' ? [path] : []))
  const long = `/${'a'.repeat(1_023)}…`
  expect(paths.slice(0, 4)).toEqual(['/api/media/mbkt_…/rest', '/absolute', '/a%20b/%C3%BC', long])
  expect(server.stderr()).not.toContain('password')
})

test('O3 names of files, metadata of uploads, keys, cookies and referrers are not logged', async () => {
  const secret = 'Tell-Nobody-4711'
  const base64 = Buffer.from(secret).toString('base64')
  await upload(server, 'x', { name: `${secret}.txt` })
  const headers = {
    'idempotency-key': secret,
    cookie: secret,
    referer: `http://x/${secret}`,
  }
  await server.request('/api/media', { method: 'POST', body: secret, headers })
  const tus = tusOf(server)
  await tus.send('POST', '/api/uploads', { 'upload-length': '1', 'upload-metadata': `filename ${base64}` })
  await tus.send('POST', '/api/uploads', { 'upload-length': '1', 'upload-metadata': `${secret} !!` })
  await flush()
  expect(server.stderr()).not.toContain(secret)
  expect(server.stderr()).not.toContain(secret.toLowerCase())
  expect(server.stderr()).not.toContain(base64)
})
