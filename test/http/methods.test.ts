import { beforeAll, expect, test } from 'vitest'
import { expectProblem } from '../harness/problem.ts'
import { responseOf, sendRaw } from '../harness/raw-http.ts'
import type { SharedServer } from '../harness/server.ts'
import { sharedServer } from '../harness/shared-server.ts'

let server: SharedServer
beforeAll(async () => {
  server = await sharedServer()
})

const routes = [
  ['/api/media', 'DELETE, GET, HEAD, OPTIONS, PATCH, POST'],
  ['/api/media/', 'GET, HEAD, OPTIONS, POST'],
  ['/v1/media', 'GET, HEAD, OPTIONS, POST'],
  ['/v1/media/', 'GET, HEAD, OPTIONS, POST'],
  ['/api/media/some-id', 'DELETE, GET, HEAD, OPTIONS, PATCH'],
  ['/api/trash', 'DELETE, GET, HEAD, OPTIONS'],
  ['/api/trash/restore', 'OPTIONS, POST'],
  ['/api/items', 'GET, HEAD, OPTIONS'],
  ['/api/token', 'GET, HEAD, OPTIONS'],
  ['/media/some-id', 'GET, HEAD, OPTIONS'],
  ['/problems/internal', 'GET, HEAD, OPTIONS'],
  ['/healthz', 'GET, HEAD, OPTIONS'],
  ['/readyz', 'GET, HEAD, OPTIONS'],
  ['/metrics', 'GET, HEAD, OPTIONS'],
  ['/openapi.json', 'GET, HEAD, OPTIONS'],
  ['/docs', 'GET, HEAD, OPTIONS'],
  ['/', 'GET, HEAD, OPTIONS'],
  ['/assets/some-name', 'GET, HEAD, OPTIONS'],
] as const
const methods = ['POST', 'PUT', 'PATCH', 'DELETE', 'TRACE', 'PROPFIND', 'LOCK', 'PURGE', 'M-SEARCH', 'QUERY']

const send = (method: string, path: string, more = '') =>
  sendRaw(server.url, `${method} ${path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n${more}\r\n`)

test.each(routes)('P4 %s responds to other methods with 405 and the allowed methods', async (path, allow) => {
  for (const method of methods.filter((name) => !allow.split(', ').includes(name))) {
    const response = await send(method, path)
    expect([method, response.headers.get('allow')]).toEqual([method, allow])
    await expectProblem(responseOf(response), 405, 'method-not-allowed')
  }
})

test.each(routes)('P4 OPTIONS on %s gets a 204 with the same list', async (path, allow) => {
  const response = await send('OPTIONS', path)
  expect([response.status, response.headers.get('allow'), response.body]).toEqual([204, allow, ''])
})

test('P4 a method is refused before the token is checked, and its body is not read', async () => {
  await expectProblem(
    await fetch(`${server.url}/api/media`, { method: 'PUT', body: 'x' }),
    405,
    'method-not-allowed',
  )
})

test.each([
  '/api',
  '/api/',
  '/v1',
  '/media',
  '/API/media',
  '/api/media/x/y',
  '/healthz/',
  '/problems',
  '/favicon.ico',
  '/index.html',
  '/assets/a/b',
])('P4 %s is unknown, to every method', async (path) => {
  for (const method of ['GET', 'POST', 'DELETE', 'PROPFIND', 'OPTIONS']) {
    await expectProblem(responseOf(await send(method, path)), 404, 'route-unknown')
  }
  const head = await send('HEAD', path)
  expect([head.status, head.body]).toEqual([404, ''])
})

test.each(['DELETE', 'POST', 'GET'])(
  'P4 X-HTTP-Method-Override: DELETE does not change a %s',
  async (method) => {
    const response = await server.request('/api/media/some-id', {
      method,
      headers: { 'x-http-method-override': 'DELETE' },
    })
    if (method === 'POST') await expectProblem(response, 405, 'method-not-allowed')
    else await expectProblem(response, 404, 'media-unknown')
  },
)

test('P4 CONNECT is closed without a tunnel, and the server continues', async () => {
  const response = await sendRaw(
    server.url,
    'CONNECT example.org:443 HTTP/1.1\r\nHost: example.org:443\r\n\r\n',
  )
  expect(response.status).not.toBe(200)
  expect((await fetch(`${server.url}/healthz`)).status).toBe(200)
})
