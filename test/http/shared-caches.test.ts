import { beforeAll, expect, test } from 'vitest'
import { sendRaw } from '../harness/raw-http.ts'
import type { SharedServer } from '../harness/server.ts'
import { sharedServer } from '../harness/shared-server.ts'
import { makeToken } from '../harness/token.ts'
import { uniqueName } from '../harness/unique-name.ts'
import { upload } from '../harness/upload.ts'
import { readPage } from '../harness/wire.ts'

let server: SharedServer
beforeAll(async () => {
  server = await sharedServer()
})

/** Whether a shared cache may store the response (RFC 9111, section 3). */
const isStorable = (headers: Headers) => !/\b(private|no-store)\b/.test(headers.get('cache-control') ?? '')

test('L17, A6 a shared cache cannot store responses to a token', async () => {
  const { id, url } = await upload(server, 'x')
  const responses = {
    page: await server.request('/api/media'),
    'page not modified': await server.request('/api/media', { headers: { 'if-none-match': '*' } }),
    'page by HEAD': await server.request('/api/media', { method: 'HEAD' }),
    item: await server.request(`/api/media/${id}`),
    upload: await server.request('/api/media', { method: 'POST', body: 'x' }),
    'no token': await fetch(`${server.url}/api/media`),
    'no item': await server.request('/api/media/x'),
    'no bytes': await fetch(`${server.url}/media/x`),
    metrics: await fetch(`${server.url}/metrics`),
  }
  for (const [name, { headers }] of Object.entries(responses)) {
    expect([name, isStorable(headers)]).toEqual([name, false])
  }
  expect(isStorable((await fetch(url)).headers)).toBe(true)
})

test('L17, A6 the pages of two tokens have different validators, and vary by Authorization', async () => {
  const other = await makeToken(server, '--bucket', uniqueName('other'))
  const mine = await server.request('/api/media')
  const theirs = await server.request('/api/media', { headers: { authorization: other.authorization } })
  expect(mine.headers.get('vary')).toContain('Authorization')
  expect(mine.headers.get('etag')).not.toBe(theirs.headers.get('etag'))
  expect((await readPage(mine)).total).toBeGreaterThan(0)
  expect((await readPage(theirs)).total).toBe(0)
})

test.each(['evil.example', 'evil.example:80', '127.0.0.1:1', ''])(
  'L18 no request header changes a URL in a response: Host %s',
  async (host) => {
    const hostile = `Host: ${host}\r\nX-Forwarded-Host: evil.example\r\nX-Forwarded-Proto: https\r\nX-Forwarded-Port: 1\r\nX-Forwarded-Prefix: /evil\r\nX-Original-URL: /evil\r\nForwarded: host=evil.example;proto=https\r\nAuthorization: Bearer ${server.token}\r\nConnection: close\r\n`
    const listing = await sendRaw(server.url, `GET /api/media HTTP/1.1\r\n${hostile}\r\n`)
    expect(listing.status).toBe(200)
    const stored = await sendRaw(
      server.url,
      `POST /api/media HTTP/1.1\r\n${hostile}Content-Length: 1\r\n\r\nx`,
    )
    expect(stored.headers.get('location')).toMatch(new RegExp(`^${server.url}/api/media/\\w+$`))
    const problem = await sendRaw(server.url, `GET /nowhere HTTP/1.1\r\n${hostile}\r\n`)
    for (const { body, headers } of [listing, stored, problem]) {
      expect(body + [...headers].join()).not.toContain('evil')
      expect(body).toContain(server.url)
    }
  },
)

test('L18 a request target in absolute form changes no URL in a response', async () => {
  const raw = `GET http://evil.example/api/media HTTP/1.1\r\nHost: evil.example\r\nAuthorization: Bearer ${server.token}\r\nConnection: close\r\n\r\n`
  const response = await sendRaw(server.url, raw)
  expect([response.status, response.body.includes('evil')]).toEqual([200, false])
})
