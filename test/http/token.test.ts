import { afterAll, beforeAll, expect, test } from 'vitest'
import { runHere } from '../harness/commands.ts'
import { startServer, type TestServer } from '../harness/server.ts'
import { makeToken } from '../harness/token.ts'

let server: TestServer
beforeAll(async () => {
  server = await startServer()
})
afterAll(() => server[Symbol.asyncDispose]())

const describeToken = async (authorization?: string) => {
  const response = await server.request('/api/token', authorization ? { headers: { authorization } } : {})
  expect([response.status, response.headers.get('content-type')]).toEqual([
    200,
    'application/json; charset=utf-8',
  ])
  const text = await response.text()
  expect(text).not.toContain('mbkt_')
  return { ...JSON.parse(text), header: response.headers.get('cache-control') }
}

/** RFC 3339, in UTC, and the current time. */
function expectNow(time: string): void {
  expect(time).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
  expect(Math.abs(Date.now() - Date.parse(time))).toBeLessThan(60_000)
}

test('T1, T3 the response has all properties of the first token', async () => {
  const { header, created_at, ...rest } = await describeToken()
  expect(header).toBe('no-store')
  expectNow(created_at)
  expect(rest).toEqual({
    id: expect.stringMatching(/^tok_\w+$/),
    name: 'first',
    bucket: 'default',
    scopes: ['media:read', 'media:write', 'media:delete', 'tokens:manage', 'webhooks:manage'],
    expires_at: null,
    note: null,
    limits: null,
    uploaded: null,
    left: null,
  })
})

test('T1 the members have the documented order', async () => {
  const text = await (await server.request('/api/token')).text()
  expect(text).toMatch(/^\{"id":.*,"name":.*,"bucket":.*,"scopes":.*,"created_at":.*,"expires_at":.*\}$/)
})

test('T1 the response has the expiry of the token', async () => {
  const { authorization } = await makeToken(server, '--bucket', 'default', '--expires', '30d')
  const { created_at, expires_at } = await describeToken(authorization)
  expect(Date.parse(expires_at) - Date.parse(created_at)).toBe(30 * 86_400_000)
})

test.each(['media:read', 'media:write', 'media:delete', 'tokens:manage'])(
  'T2 a token with only the scope %s gets its properties',
  async (scope) => {
    const { id, authorization } = await makeToken(
      server,
      ...['--bucket', 'other', '--name', `“${scope}” <b>`, '--scope', scope],
    )
    expect(await describeToken(authorization)).toMatchObject({
      id,
      name: `“${scope}” <b>`,
      bucket: 'other',
      scopes: [scope],
    })
  },
)

test('T2 a revoked token gets a 401 problem', async () => {
  const { id, authorization } = await makeToken(server, '--bucket', 'default')
  await runHere(server.data, 'token revoke', id)
  const response = await server.request('/api/token', { headers: { authorization } })
  expect(response.status).toBe(401)
})
