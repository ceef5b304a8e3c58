import { randomUUID } from 'node:crypto'
import { beforeAll, describe, expect, test } from 'vitest'
import { runHere } from '../harness/commands.ts'
import { expectProblem } from '../harness/problem.ts'
import { responseOf, sendRaw } from '../harness/raw-http.ts'
import type { SharedServer } from '../harness/server.ts'
import { startServer } from '../harness/server.ts'
import { sharedServer } from '../harness/shared-server.ts'
import { makeToken } from '../harness/token.ts'
import { uniqueName } from '../harness/unique-name.ts'
import { until } from '../harness/until.ts'
import { upload } from '../harness/upload.ts'

let server: SharedServer
beforeAll(async () => {
  server = await sharedServer()
})

const list = (authorization: string) => server.request('/api/media', { headers: { authorization } })

const operations = [
  ['GET', '/api/media'],
  ['HEAD', '/api/media/'],
  ['GET', '/v1/media'],
  ['GET', '/v1/media/'],
  ['POST', '/api/media'],
  ['POST', '/v1/media'],
  ['GET', '/api/media/00000000000000000000000000'],
  ['DELETE', '/api/media/00000000000000000000000000'],
  ['GET', '/api/token'],
] as const

test.each(operations)('A1, A2 %s %s without a token gets a 401 problem', async (method, path) => {
  const body = method === 'POST' ? 'x' : null
  const response = await fetch(new URL(path, server.url), { method, body })
  expect(response.headers.get('www-authenticate')).toBe('Bearer realm="mediabucket"')
  if (method === 'HEAD') expect([response.status, await response.text()]).toEqual([401, ''])
  else await expectProblem(response, 401, 'token-missing')
})

test.each(['Bearer', 'bearer', 'BEARER', 'BeArEr'])(
  'A1 the scheme is case-insensitive: %s',
  async (scheme) => {
    expect((await list(`${scheme} ${server.token}`)).status).toBe(200)
  },
)

describe('A2', () => {
  const changed = (token: string, at: number) =>
    token.slice(0, at) + (token.charAt(at) === '0' ? '1' : '0') + token.slice(at + 1)

  test.each([
    ['garbage', () => 'garbage'],
    ['cut short', () => server.token.slice(0, -1)],
    ['only the prefix of a true one', () => server.token.slice(0, 20)],
    ['with a character changed', () => changed(server.token, 10)],
    ['with a character of the checksum changed', () => changed(server.token, 42)],
    ['with something behind it', () => `${server.token}x`],
    ['two words', () => `${server.token} ${server.token}`],
    ['in upper case', () => server.token.toUpperCase()],
    ['quoted', () => `"${server.token}"`],
  ])('A2 a token that is %s gets a 401 problem with invalid_token', async (_, make) => {
    const response = await list(`Bearer ${make()}`)
    expect(response.headers.get('www-authenticate')).toMatch(/^Bearer .*error="invalid_token"/)
    await expectProblem(response, 401, 'token-malformed')
  })

  test('A2 a well-formed token of another service gets a 401 problem with invalid_token', async () => {
    await using other = await startServer()
    const response = await list(`Bearer ${other.token}`)
    expect(response.headers.get('www-authenticate')).toMatch(/^Bearer .*error="invalid_token"/)
    await expectProblem(response, 401, 'token-unknown')
  })

  test.each([
    ['Basic', () => `Basic ${Buffer.from(`user:${server.token}`).toString('base64')}`],
    ['no scheme', () => server.token],
    ['a scheme without a token', () => 'Bearer'],
    ['nothing', () => ''],
  ])('A2 an Authorization header of %s counts as no token', async (_, make) => {
    const response = await list(make())
    expect(response.headers.get('www-authenticate')).toBe('Bearer realm="mediabucket"')
    await expectProblem(response, 401, 'token-missing')
  })

  test('A2 a token of 1 MB gets a 431 problem, and the server continues', async () => {
    const raw = `GET /api/media HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${'a'.repeat(1_000_000)}\r\n\r\n`
    const response = await sendRaw(server.url, raw)
    await expectProblem(responseOf(response), 431, 'headers-too-large')
    expect((await fetch(`${server.url}/healthz`)).status).toBe(200)
  })
})

describe('A3', () => {
  const scopes = ['media:read', 'media:write', 'media:delete', 'tokens:manage'] as const
  const attempts = [
    ['media:read', 'GET', '/api/media', 200],
    ['media:read', 'GET', '/api/media/«id»', 200],
    ['media:write', 'POST', '/api/media', 201],
    ['media:delete', 'DELETE', '/api/media/«id»', 204],
  ] as const

  test.each(scopes)(
    'A3 a token with only the scope %s can call the operations that need it, and no others',
    async (scope) => {
      const { authorization } = await makeToken(server, '--bucket', server.bucket, '--scope', scope)
      const { id } = await upload(server, 'x')
      for (const [needed, method, path, good] of attempts) {
        const response = await server.request(path.replace('«id»', id), {
          method,
          headers: { authorization },
          body: method === 'POST' ? 'x' : null,
        })
        if (needed === scope) {
          expect([method, path, response.status]).toEqual([method, path, good])
          continue
        }
        const challenge = response.headers.get('www-authenticate')
        expect(challenge).toMatch(/^Bearer .*error="insufficient_scope"/)
        expect(challenge).toContain(`scope="${needed}"`)
        const problem = await expectProblem(response, 403, 'scope-missing')
        expect(problem.errors).toEqual([{ parameter: 'scope', detail: needed, missing: [needed] }])
      }
    },
  )

  test('A3 a token created without scopes reads, writes and deletes', async () => {
    const { authorization } = await makeToken(server, '--bucket', server.bucket)
    const { id } = await upload(server, 'x', { authorization })
    expect((await list(authorization)).status).toBe(200)
    const removed = await server.request(`/api/media/${id}`, { method: 'DELETE', headers: { authorization } })
    expect(removed.status).toBe(204)
  })
})

describe('A4', () => {
  const raw = (...values: string[]) =>
    `GET /api/media HTTP/1.1\r\nHost: x\r\nConnection: close\r\n${values.map((value) => `Authorization: ${value}\r\n`).join('')}\r\n`

  test.each([
    ['the same twice', () => [`Bearer ${server.token}`, `Bearer ${server.token}`]],
    ['a good one first', () => [`Bearer ${server.token}`, 'Bearer x']],
    ['a good one last', () => ['Basic x', `Bearer ${server.token}`]],
    ['an empty one first', () => ['', `Bearer ${server.token}`]],
  ])('A4 two Authorization headers get a 400 problem: %s', async (_, values) => {
    await expectProblem(
      responseOf(await sendRaw(server.url, raw(...values()))),
      400,
      'authorization-repeated',
    )
  })
})

test.each(['token', 'access_token'])('A5 ?%s= is neither accepted nor logged', async (parameter) => {
  const { token } = await makeToken(server, '--bucket', server.bucket)
  // The last path is new, because other tests write to the same log.
  const last = `/nowhere/${randomUUID()}`
  for (const path of ['/api/media', '/api/media/x', '/media/x', '/media/%zz', '/healthz', last]) {
    const response = await fetch(`${server.url}${path}?${parameter}=${token}`)
    expect(await response.text()).not.toContain(token)
    if (path.startsWith('/api')) expect([path, response.status]).toEqual([path, 401])
  }
  await until('all are logged', () => server.stderr().includes(`"path":"${last}"`))
  expect(server.stderr()).not.toContain(token)
})

test('A6, M3 an item of another bucket gets the response of an id that never existed', async () => {
  const { authorization } = await makeToken(server, '--bucket', uniqueName('other'))
  const { id } = await upload(server, 'mine')
  for (const method of ['GET', 'DELETE']) {
    const ask = async (name: string) => {
      const response = await server.request(`/api/media/${name}`, { method, headers: { authorization } })
      const { instance, ...rest } = await expectProblem(response, 404, 'media-unknown')
      expect(instance).not.toBe('')
      return { ...rest, headers: [...response.headers].filter(([key]) => key !== 'date') }
    }
    expect(await ask(id)).toEqual(await ask('0'.repeat(26)))
    expect(await ask(id)).toEqual(await ask('x'.repeat(2_000)))
  }
  expect((await server.request(`/api/media/${id}`)).status).toBe(200)
})

test('A7 a token that is revoked while the server runs fails on the next request', async () => {
  const { id, authorization } = await makeToken(server, '--bucket', server.bucket)
  expect((await list(authorization)).status).toBe(200)
  await runHere(server.data, 'token revoke', id)
  const response = await list(authorization)
  expect(response.headers.get('www-authenticate')).toMatch(/error="invalid_token"/)
  await expectProblem(response, 401, 'token-revoked')
})

test('A9 a token fails once it has expired', async () => {
  const { authorization } = await makeToken(server, '--bucket', server.bucket, '--expires', '10s')
  expect((await list(authorization)).status).toBe(200)
  const expired = await until('the token expires', async () => {
    const response = await list(authorization)
    return response.status === 401 ? response : null
  })
  expect(expired.headers.get('www-authenticate')).toMatch(/error="invalid_token"/)
  await expectProblem(expired, 401, 'token-expired')
})
