import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { newToken } from '../../packages/server/src/core/token-rules.ts'
import { runHere } from '../harness/commands.ts'
import { freshMetrics } from '../harness/fresh-metrics.ts'
import { expectProblem } from '../harness/problem.ts'
import { sendRaw } from '../harness/raw-http.ts'
import { startServer, type TestServer } from '../harness/server.ts'
import { makeToken } from '../harness/token.ts'
import { until } from '../harness/until.ts'
import { upload } from '../harness/upload.ts'
import { readDescription } from '../openapi/conformance.ts'

/** These limits refill too slowly to affect a test. */
const few = (requests: number) => `${requests}/1d`

const statuses = async (responses: readonly Promise<Response>[]) =>
  (await Promise.all(responses)).map(({ status }) => status)

const refusedBy = (response: Response, limit: string, requests: number) => {
  expect(response.headers.get('ratelimit-policy')).toBe(`"${limit}";q=${requests};w=86400`)
  const seconds = Number(response.headers.get('retry-after'))
  expect(seconds).toBeGreaterThan(86_400 / requests - 60)
  expect(seconds).toBeLessThanOrEqual(Math.ceil(86_400 / requests))
  expect(response.headers.get('ratelimit')).toBe(`"${limit}";r=0;t=${seconds}`)
}

describe('requests of a token', () => {
  let server: TestServer
  beforeAll(async () => {
    server = await startServer({ MEDIABUCKET_TOKEN_RATE: few(20) })
  })
  afterAll(() => server[Symbol.asyncDispose]())
  const as = (authorization: string, path: string, init: RequestInit = {}) =>
    server.request(path, { ...init, headers: { authorization } })

  test('W2, W5 beyond the limit every operation with the token is refused with 429, listings too', async () => {
    const { authorization } = await makeToken(server, '--bucket', 'default')
    const { id, url } = await upload(server, 'x', { authorization })
    for (let i = 1; i < 20; i += 1) {
      const path = ['/api/media', `/api/media/${id}`, '/api/bucket', '/api/media?page=2'][i % 4] ?? ''
      const response = await as(authorization, path)
      expect([response.status, response.headers.get('ratelimit')]).toEqual([200, null])
    }
    for (const [method, path] of [
      ['GET', '/api/media'],
      ['HEAD', '/v1/media/'],
      ['GET', `/api/media/${id}`],
      ['DELETE', `/api/media/${id}`],
      ['GET', '/api/token'],
      ['POST', '/api/uploads'],
    ]) {
      const response = await as(authorization, path ?? '', { method: method ?? '' })
      refusedBy(response, 'token', 20)
      if (method === 'HEAD') expect(response.status).toBe(429)
      else await expectProblem(response, 429, 'rate-limited')
    }
    // The refused delete had no effect; bytes and other tokens are not limited.
    expect((await fetch(url)).status).toBe(200)
    expect((await server.request(`/api/media/${id}`)).status).toBe(200)
  })

  test('W2 an upload beyond the limit is refused before its body is read', async () => {
    const { authorization } = await makeToken(server, '--bucket', 'default')
    await statuses(Array.from({ length: 20 }, () => as(authorization, '/api/token')))
    const { status, body } = await sendRaw(
      server.url,
      `POST /api/media HTTP/1.1\r\nHost: x\r\nAuthorization: ${authorization}\r\nExpect: 100-continue\r\nContent-Length: 1000\r\nConnection: close\r\n\r\n`,
    )
    expect([status, JSON.parse(body)]).toEqual([429, expect.objectContaining({ code: 'rate-limited' })])
  })

  test('W2 coalesced requests are counted individually', async () => {
    const { authorization } = await makeToken(server, '--bucket', 'default')
    const found = await statuses(Array.from({ length: 30 }, () => as(authorization, '/api/media')))
    expect(found.filter((status) => status === 200)).toHaveLength(20)
    expect(found.filter((status) => status === 429)).toHaveLength(10)
  })

  test('W2 304 responses and requests without the scope count', async () => {
    const one = await makeToken(server, '--bucket', 'default')
    const init = { headers: { authorization: one.authorization, 'if-none-match': '*' } }
    const unchanged = Array.from({ length: 21 }, () => server.request('/api/media', init))
    expect((await statuses(unchanged)).filter((status) => status === 429)).toHaveLength(1)
    const other = await makeToken(server, '--bucket', 'default', '--scope', 'media:write')
    const refused = Array.from({ length: 21 }, () => as(other.authorization, '/api/media'))
    expect((await statuses(refused)).filter((status) => status === 429)).toHaveLength(1)
  })
})

describe('requests of an address', () => {
  let server: TestServer
  beforeAll(async () => {
    server = await startServer({
      MEDIABUCKET_ADDRESS_RATE: few(40),
      MEDIABUCKET_TRUSTED_PROXIES: 'loopback',
      MEDIABUCKET_CORS_ORIGINS: '*',
    })
  })
  afterAll(() => server[Symbol.asyncDispose]())
  const from = (address: string, path: string, init: RequestInit = {}) =>
    fetch(server.url + path, { ...init, headers: { ...init.headers, 'x-forwarded-for': address } })
  const exhaust = (address: string) =>
    statuses(Array.from({ length: 40 }, () => from(address, '/problems/internal')))

  test('W1, W2 an address beyond its limit is refused for every path, and other addresses are not', async () => {
    const { id } = await upload(server, 'x')
    const authorization = `Bearer ${server.token}`
    const calls: (() => Promise<Response>)[] = [
      () => from('2001:db8:0:1::1', '/api/media', { headers: { authorization } }),
      () => from('2001:db8:0:1::2', '/api/media', { method: 'HEAD', headers: { authorization } }),
      () => from('2001:db8:0:1::3', `/media/${id}`),
      () => from('2001:db8:0:1::4', '/'),
      () => from('2001:db8:0:1::5', '/nowhere'),
      () => from('2001:db8:0:1::6', '/media/%zz'),
      () => from('2001:db8:0:1::7', '/api/media', { method: 'PUT' }),
      () => from('2001:db8:0:1::8', '/api/media', { method: 'OPTIONS' }),
    ]
    for (let round = 0; round < 5; round += 1)
      expect(await statuses(calls.map((call) => call()))).toEqual([200, 200, 200, 200, 404, 400, 405, 204])
    expect(await statuses(calls.map((call) => call()))).toEqual(calls.map(() => 429))
    expect((await from('2001:db8:0:2::1', `/media/${id}`)).status).toBe(200)
    expect((await fetch(`${server.url}/media/${id}`)).status).toBe(200)
  })

  test('W2, W5, D1 the 429 of every operation matches the OpenAPI document', async () => {
    const description = await readDescription(server)
    await exhaust('203.0.113.1')
    const limited = description.operations.filter(({ statuses: all }) => all.includes(429))
    for (const { method, path } of limited) {
      const response = await from('203.0.113.1', path.replace(/\{\w+\}/, 'x'), { method })
      expect([method, path, response.status]).toEqual([method, path, 429])
      refusedBy(response, 'address', 40)
      await description.expectDescribed(method, path, response)
    }
    const others = description.operations.filter((one) => !limited.includes(one))
    expect(others.map(({ path }) => path)).toEqual(['/healthz', '/readyz', '/metrics'])
  })

  test('W3 health checks and metrics work beyond the limit, and the metrics count the refused requests', async () => {
    await exhaust('203.0.113.2')
    const count = async () => {
      const text = await freshMetrics(server.url, () => from('203.0.113.2', '/metrics'))
      return Number(/^mediabucket_limited_requests_total\{limit="address"\} (\d+)$/m.exec(text)?.[1])
    }
    const before = await count()
    expect((await from('203.0.113.2', '/problems/internal')).status).toBe(429)
    expect(await statuses(['/healthz', '/readyz'].map((path) => from('203.0.113.2', path)))).toEqual([
      200, 200,
    ])
    expect(await count()).toBe(before + 1)
  })

  test('W5, C2, R2, B5 a 429 has the headers of every response of its path', async () => {
    await exhaust('203.0.113.3')
    const headers = { origin: 'https://app.example.org', authorization: `Bearer ${server.token}` }
    for (const path of ['/api/media', '/api/uploads', '/media/x', '/nowhere']) {
      const response = await from('203.0.113.3', path, {
        headers,
        method: path === '/api/uploads' ? 'POST' : 'GET',
      })
      expect([response.status, response.headers.get('access-control-allow-origin')]).toEqual([429, '*'])
      expect(response.headers.get('access-control-expose-headers')).toContain(
        'Retry-After, RateLimit, RateLimit-Policy',
      )
      if (path === '/api/uploads') expect(response.headers.get('tus-resumable')).toBe('1.0.0')
      if (path === '/media/x') expect(response.headers.get('content-security-policy')).toContain('sandbox')
    }
  })
})

test('W1 behind an untrusted proxy all clients share one limit, and the log warns once', async () => {
  await using server = await startServer({ MEDIABUCKET_ADDRESS_RATE: few(5) })
  const from = (address: string) =>
    fetch(`${server.url}/nowhere`, { headers: { 'x-forwarded-for': address } })
  for (let i = 0; i < 7; i += 1) await from(`203.0.113.${i}`)
  await expectProblem(await from('203.0.113.8'), 429, 'rate-limited')
  await until('all are logged', () => server.log().filter(({ path }) => path === '/nowhere').length === 8)
  expect(server.log().filter(({ msg }) => msg.includes('MEDIABUCKET_TRUSTED_PROXIES'))).toMatchObject([
    { level: 40, peer: '127.0.0.1' },
  ])
})

describe('invalid tokens', () => {
  let server: TestServer
  beforeAll(async () => {
    server = await startServer({
      MEDIABUCKET_AUTH_FAILURE_RATE: few(10),
      MEDIABUCKET_TRUSTED_PROXIES: 'loopback',
    })
  })
  afterAll(() => server[Symbol.asyncDispose]())
  const ask = (address: string, token: string | null, path = '/api/media') =>
    fetch(server.url + path, {
      headers: {
        'x-forwarded-for': address,
        ...(token === null ? {} : { authorization: `Bearer ${token}` }),
      },
    })
  const guess = (address: string, path?: string) => ask(address, newToken(), path)

  test.each(['/api/media', '/api/token'])(
    'W4 after too many invalid tokens at %s the address gets a 429 for each further one, and valid tokens work',
    async (path) => {
      const address = path === '/api/media' ? '203.0.113.1' : '203.0.113.2'
      const expired = await makeToken(server, '--bucket', 'default', '--expires', '1ms')
      const revoked = await makeToken(server, '--bucket', 'default')
      await runHere(server.data, 'token revoke', revoked.id)
      expect(await statuses(Array.from({ length: 10 }, () => guess(address, path)))).toEqual(
        Array(10).fill(401),
      )
      const bodies = new Set<string>()
      for (const token of [newToken(), 'x', expired.token, revoked.token]) {
        const response = await ask(address, token, path)
        refusedBy(response, 'authentication', 10)
        expect(response.headers.get('www-authenticate')).toBe(null)
        const { instance, detail, ...problem } = await expectProblem(response, 429, 'rate-limited')
        bodies.add(JSON.stringify([problem, detail.replace(/in \d+ s\.$/, '')]))
      }
      expect(bodies.size).toBe(1)
      expect((await ask(address, server.token, path)).status).toBe(200)
      // Requests without a token and other addresses are not limited.
      expect((await ask(address, null, path)).status).toBe(401)
      expect((await guess('203.0.113.99', path)).status).toBe(401)
    },
  )

  test('W4 coalesced requests with invalid tokens are counted individually', async () => {
    const token = newToken()
    const found = await statuses(Array.from({ length: 15 }, () => ask('203.0.113.3', token)))
    expect(found.filter((status) => status === 401)).toHaveLength(10)
    expect(found.filter((status) => status === 429)).toHaveLength(5)
  })

  test('W4 a valid token without the scope is not counted as a failed authentication', async () => {
    const { token } = await makeToken(server, '--bucket', 'default', '--scope', 'media:write')
    const responses = Array.from({ length: 15 }, () => ask('203.0.113.4', token))
    expect(await statuses(responses)).toEqual(Array(15).fill(403))
  })
})

test('W2 a disabled limit refuses nothing', async () => {
  await using server = await startServer({
    MEDIABUCKET_TOKEN_RATE: 'off',
    MEDIABUCKET_ADDRESS_RATE: '0',
    MEDIABUCKET_AUTH_FAILURE_RATE: 'off',
  })
  const guesses = Array.from({ length: 150 }, () =>
    server.request('/api/media', { headers: { authorization: `Bearer ${newToken()}` } }),
  )
  expect(new Set(await statuses(guesses))).toEqual(new Set([401]))
})
