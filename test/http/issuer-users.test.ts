import { afterAll, beforeAll, expect, test } from 'vitest'
import { startIssuer, type TestIssuer } from '../harness/issuer.ts'
import { expectProblem } from '../harness/problem.ts'
import { startServer, type TestServer } from '../harness/server.ts'
import { makeToken } from '../harness/token.ts'
import { until } from '../harness/until.ts'
import { readCreatedToken, readItem, readPage, readToken, readTokenList } from '../harness/wire.ts'
import { describeToken, seconds, send, startUserServer } from './user-server.ts'

let issuer: TestIssuer
let server: TestServer
beforeAll(async () => {
  issuer = await startIssuer()
  server = await startUserServer(issuer)
})
afterAll(async () => {
  await server[Symbol.asyncDispose]()
  await issuer[Symbol.asyncDispose]()
})

const store = async (token: string, body: string) =>
  readItem(await send(server, token, '/api/media', { method: 'POST', body }))

const listed = async (token: string) => readPage(await send(server, token))

test('J1, J4 a person who signs in with PKCE has a bucket of her own, and a program another one', async () => {
  const { access_token: anna } = await issuer.signIn('anna')
  const backend = await issuer.clientToken('media:read media:write')
  const { id, url } = await store(anna, 'a picture')
  expect((await listed(anna)).data).toEqual([url])
  expect(await listed(backend)).toMatchObject({ total: 0 })
  await expectProblem(await send(server, backend, `/api/media/${id}`), 404, 'media-unknown')
  await expectProblem(
    await send(server, await issuer.sign({ sub: 'backend' }), `/api/media/${id}`, { method: 'DELETE' }),
    404,
    'media-unknown',
  )
  expect((await send(server, anna, `/api/media/${id}`, { method: 'DELETE' })).status).toBe(204)
  expect(await listed(anna)).toMatchObject({ total: 0 })
})

test('J6 the description of a token has the scopes and the expiry of the JWT', async () => {
  const exp = seconds() + 100
  const token = await issuer.sign({ sub: 'described', scope: 'openid media:read email', exp })
  const described = await describeToken(server, token)
  expect(described).toEqual({
    id: expect.stringMatching(/^usr_[0-9a-z]{12}$/),
    name: 'described',
    bucket: 'user-described',
    scopes: ['media:read'],
    created_at: expect.any(String),
    expires_at: new Date(exp * 1000).toISOString(),
    ...{ note: null, limits: null, uploaded: null, left: null },
  })
  // The next JWT of the same user.
  const next = await issuer.sign({ sub: 'described', scope: 'media:write', exp: exp + 1 })
  expect(await describeToken(server, next)).toMatchObject({ id: described.id, scopes: ['media:write'] })
  await expectProblem(await send(server, next), 403, 'scope-missing')
})

test('J4 subjects that differ only in case, in signs or at their end have different buckets', async () => {
  const long = 'a'.repeat(80)
  const subjects = ['jo', 'Jo', 'JO', 'j-o', 'j--o', 'j.o', 'jö', 'jo\u0308', 'auth0|1', 'auth0-1', 'x--jo']
  const buckets: string[] = []
  for (const sub of [...subjects, `${long}a`, `${long}b`, ` jo`, '../jo', 'constructor']) {
    const described = await describeToken(server, await issuer.sign({ sub }))
    expect(described.name).toBe(sub)
    buckets.push(described.bucket)
  }
  expect(new Set(buckets).size).toBe(buckets.length)
  expect(buckets.slice(0, 2)).toEqual(['user-jo', 'user-x---4ao'])
  expect(buckets.filter((name) => !/^user-[a-z0-9][a-z0-9-]{0,57}$/.test(name))).toEqual([])
})

test('J5 concurrent first requests create one bucket, and one row of the user', async () => {
  const token = await issuer.sign({ sub: 'crowd' })
  const responses = await Promise.all(Array.from({ length: 20 }, () => send(server, token, '/api/token')))
  expect(new Set(responses.map(({ status }) => status))).toEqual(new Set([200]))
  const ids = await Promise.all(responses.map(async (response) => readToken(await response.json()).id))
  expect(new Set(ids).size).toBe(1)
  const { stdout } = await server.command('token', 'list', '--bucket', 'user-crowd')
  expect(stdout.match(/usr_\w+/g)).toEqual([ids[0]])
  expect(await (await send(server, token, '/api/bucket')).json()).toMatchObject({
    max_bytes: 1_000_000,
    private: true,
  })
})

test('J5 a deleted bucket is gone at once, and is created again by the next request', async () => {
  const token = await issuer.sign({ sub: 'gone' })
  await store(token, 'x')
  const before = await describeToken(server, token)
  await server.command('bucket', 'delete', 'user-gone', '--yes')
  expect(await listed(token)).toMatchObject({ total: 0 })
  expect((await describeToken(server, token)).id).not.toBe(before.id)
})

test('J7 a user whose access is restored has it again with the next request; a token of the service stays revoked', async () => {
  const token = await issuer.sign({ sub: 'restored' })
  await store(token, 'x')
  const { id } = await describeToken(server, token)
  await server.command('token', 'revoke', id)
  await expectProblem(await send(server, token), 401, 'token-revoked')
  const { stderr } = await server.command('token', 'restore', 'restored')
  expect(stderr).toContain(`Restored the access of the user ${id} "restored" of the bucket "user-restored".`)
  expect(await listed(token)).toMatchObject({ total: 1 })
  const again = await server.command('token', 'restore', id)
  expect(again.stderr).toContain('was not revoked')
  const own = await makeToken(server, '--bucket', 'user-restored')
  const { id: ownId } = await describeToken(server, own.token)
  await server.command('token', 'revoke', ownId)
  await expect(server.command('token', 'restore', ownId)).rejects.toMatchObject({
    code: 1,
    stderr: expect.stringContaining('stays revoked'),
  })
  await expectProblem(await send(server, own.token), 401, 'token-revoked')
})

test('J7 a revoked user fails with the next request, with every JWT, in every process', async () => {
  const token = await issuer.sign({ sub: 'revoked' })
  const { id } = await describeToken(server, token)
  await server.command('token', 'revoke', id)
  for (const one of [token, await issuer.sign({ sub: 'revoked' }), token, token])
    await expectProblem(await send(server, one), 401, 'token-revoked')
})

test('J6 an Idempotency-Key belongs to the user, whatever JWT the request has', async () => {
  const put = async (exp: number, sub = 'twice') =>
    readItem(
      await send(server, await issuer.sign({ sub, exp }), '/api/media', {
        method: 'POST',
        body: 'same',
        headers: { 'idempotency-key': 'one' },
      }),
    )
  const first = await put(seconds() + 100)
  expect((await put(seconds() + 101)).id).toBe(first.id)
  expect((await put(seconds() + 100, 'other')).id).not.toBe(first.id)
})

test('J1 tokens of the service work as before, also in the bucket of a user', async () => {
  await store(await issuer.sign({ sub: 'shared' }), 'x')
  const { token } = await makeToken(server, '--bucket', 'user-shared')
  expect(await listed(token)).toMatchObject({ total: 1 })
  await expectProblem(await send(server, `${token}x`), 401, 'token-malformed')
  await expectProblem(await send(server, 'no-token'), 401, 'token-malformed')
})

test('J3, J5, J8 other settings; the start does not wait for the issuer', async () => {
  await using other = await startIssuer()
  other.setReachable(false)
  await using strict = await startServer({
    ...other.settings,
    MEDIABUCKET_JWT_BUCKET: '{/app/tenant}-media',
    MEDIABUCKET_JWT_SCOPES: '/app/roles',
    MEDIABUCKET_JWT_DEFAULT_SCOPES: 'media:read',
    MEDIABUCKET_JWT_JWKS_URL: `${other.url}/jwks`,
  })
  const app = { tenant: 'blue', roles: ['media:read', 'media:write', 'tokens:manage'] }
  const token = await other.sign({ app })
  const unavailable = await send(strict, token)
  expect(unavailable.headers.get('retry-after')).toBe('2')
  await expectProblem(unavailable, 503, 'issuer-unavailable')
  expect((await strict.request('/api/media')).status).toBe(200)
  other.setReachable(true)
  await until('the keys are received', async () => (await send(strict, token)).status !== 503)

  // No bucket is created.
  await expectProblem(await send(strict, token), 403, 'bucket-missing')
  await strict.command('bucket', 'create', 'blue-media')
  expect(await describeToken(strict, token)).toMatchObject({
    bucket: 'blue-media',
    scopes: ['media:read', 'media:write'],
  })
  for (const tenant of [undefined, '', 5, ['blue'], { blue: 1 }])
    await expectProblem(await send(strict, await other.sign({ app: { tenant } })), 403, 'bucket-missing')
  const plain = await other.sign({ sub: 'bob', app: { tenant: 'blue' } })
  expect((await describeToken(strict, plain)).scopes).toEqual(['media:read'])

  // T4 to T8: users are in the list of tokens. Their JWTs manage no tokens.
  await expectProblem(await send(strict, token, '/api/tokens'), 403, 'scope-missing')
  const managing = ['media:read', 'media:write', 'tokens:manage'].flatMap((scope) => ['--scope', scope])
  const { token: manager } = await makeToken(strict, '--bucket', 'blue-media', ...managing)
  const manage = (method: string, path: string, body?: object) =>
    send(strict, manager, `/api/tokens${path}`, {
      method,
      ...(body && { body: JSON.stringify(body), headers: { 'content-type': 'application/json' } }),
    })
  const created = readCreatedToken(await (await manage('POST', '', { scopes: ['media:read'] })).json())
  expect((await send(strict, created.token)).status).toBe(200)
  await expectProblem(await manage('POST', '', { scopes: ['media:delete'] }), 403, 'scope-missing')
  const { data } = readTokenList(await (await manage('GET', '')).json())
  expect(data.map(({ name, scopes }) => [name, scopes])).toEqual([
    ['anna', []],
    ['bob', []],
    ['', ['media:read', 'media:write', 'tokens:manage']],
    ['', ['media:read']],
  ])
  const [own, bob] = data
  await expectProblem(
    await manage('POST', `/${own?.id}/rotate`, { expires_at: null }),
    409,
    'managed-token-inactive',
  )
  expect((await manage('DELETE', `/${bob?.id}`)).status).toBe(204)
  await expectProblem(await send(strict, plain), 401, 'token-revoked')

  await strict.command('bucket', 'delete', 'blue-media', '--yes')
  await expectProblem(await send(strict, token), 403, 'bucket-missing')
})
