import { afterAll, beforeAll, expect, test } from 'vitest'
import { audience, startIssuer, type TestIssuer } from '../harness/issuer.ts'
import { expectProblem } from '../harness/problem.ts'
import { startServer, type TestServer } from '../harness/server.ts'
import { makeToken } from '../harness/token.ts'
import { until } from '../harness/until.ts'
import { readCreatedToken, readMedia, readPage, readToken, readTokenList } from '../harness/wire.ts'

let issuer: TestIssuer
/** Of several processes, which create buckets. */
let server: TestServer
beforeAll(async () => {
  issuer = await startIssuer()
  server = await startServer({
    ...issuer.settings,
    MEDIABUCKET_WORKERS: '2',
    MEDIABUCKET_JWT_CREATE_BUCKETS: 'on',
    MEDIABUCKET_JWT_CLOCK_SKEW: '0',
    MEDIABUCKET_JWT_BUCKET_MAX_BYTES: '1MB',
    MEDIABUCKET_JWT_BUCKET_PRIVATE: 'on',
    MEDIABUCKET_ADDRESS_RATE: 'off',
    MEDIABUCKET_AUTH_FAILURE_RATE: 'off',
  })
})
afterAll(async () => {
  await server[Symbol.asyncDispose]()
  await issuer[Symbol.asyncDispose]()
})

const send = (token: string, path = '/api/media', init: RequestInit = {}, to = server) =>
  to.request(path, { ...init, headers: { ...init.headers, authorization: `Bearer ${token}` } })

const describeToken = async (token: string, to = server) => {
  const response = await send(token, '/api/token', {}, to)
  expect([response.status, response.headers.get('cache-control')]).toEqual([200, 'no-store'])
  return readToken(await response.json())
}

const store = async (token: string, body: string) =>
  readMedia(await send(token, '/api/media', { method: 'POST', body }))

const listed = async (token: string) => readPage(await send(token))

const seconds = () => Math.floor(Date.now() / 1000)
const json = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url')

test('J1, J4 a person who signs in with PKCE has a bucket of her own, and a program another one', async () => {
  const { access_token: anna } = await issuer.signIn('anna')
  const backend = await issuer.clientToken('media:read media:write')
  const { id, url } = await store(anna, 'a picture')
  expect((await listed(anna)).data).toEqual([url])
  expect(await listed(backend)).toMatchObject({ total: 0 })
  await expectProblem(await send(backend, `/api/media/${id}`), 404, 'media-unknown')
  await expectProblem(
    await send(await issuer.sign({ sub: 'backend' }), `/api/media/${id}`, { method: 'DELETE' }),
    404,
    'media-unknown',
  )
  expect((await send(anna, `/api/media/${id}`, { method: 'DELETE' })).status).toBe(204)
  expect(await listed(anna)).toMatchObject({ total: 0 })
})

test('J6 the description of a token has the scopes and the expiry of the JWT', async () => {
  const exp = seconds() + 100
  const token = await issuer.sign({ sub: 'described', scope: 'openid media:read email', exp })
  const described = await describeToken(token)
  expect(described).toEqual({
    id: expect.stringMatching(/^usr_[0-9a-z]{12}$/),
    name: 'described',
    bucket: 'user-described',
    scopes: ['media:read'],
    created_at: expect.any(String),
    expires_at: new Date(exp * 1000).toISOString(),
  })
  // The next JWT of the same user.
  const next = await issuer.sign({ sub: 'described', scope: 'media:write', exp: exp + 1 })
  expect(await describeToken(next)).toMatchObject({ id: described.id, scopes: ['media:write'] })
  await expectProblem(await send(next), 403, 'scope-missing')
})

// Before tests with unknown keys, after which no keys are requested for 30 seconds.
test('J8 after a rotation of its keys, new tokens of the issuer are accepted, and tokens of the earlier key not', async () => {
  const old = await issuer.sign({ sub: 'rotated', exp: seconds() + 100 })
  issuer.rotateKey()
  const fresh = await issuer.sign({ sub: 'rotated' })
  // A process accepts a connection when it is idle, so possibly all connections are of one process.
  const statuses = async (token: string) => {
    const all = await Promise.all(Array.from({ length: 20 }, () => send(token)))
    return [...new Set(all.map(({ status }) => status))].join()
  }
  await until('it is accepted', async () => (await statuses(fresh)) === '200')
  // A process that cannot request the keys within five seconds responds with 503 for five seconds.
  const unknown = await issuer.sign({}, { kid: 'x' })
  await until('an unknown key is refused', async () => (await statuses(unknown)) === '401')
  await until('the earlier key is refused', async () => (await statuses(old)) === '401')
})

/** Tokens that must be refused. Signed with the issuer's key where nothing else is said. */
const hostile: Readonly<Record<string, () => Promise<string>>> = {
  'the algorithm none': async () =>
    `${json({ alg: 'none', typ: 'JWT' })}.${json({ iss: issuer.url, aud: audience, sub: 'anna', exp: seconds() + 60 })}.`,
  'HS256 with the public key as the secret': async () => {
    const { createHmac, createPublicKey } = await import('node:crypto')
    const [, claims = ''] = (await issuer.sign()).split('.')
    const text = `${json({ alg: 'HS256', kid: issuer.publicKey().kid })}.${claims}`
    const key = createPublicKey({ key: { ...issuer.publicKey() }, format: 'jwk' })
    const pem = key.export({ type: 'spki', format: 'pem' })
    return `${text}.${createHmac('sha256', pem).update(text).digest('base64url')}`
  },
  'an algorithm that is not allowed': () => issuer.sign({}, { alg: 'RS512' }),
  'another issuer': () => issuer.sign({ iss: 'https://issuer.example.org' }),
  'the issuer with a slash': () => issuer.sign({ iss: `${issuer.url}/` }),
  'another audience': () => issuer.sign({ aud: 'https://other.example.org' }),
  'no audience': () => issuer.sign({ aud: [] }),
  'a time before it is valid': () => issuer.sign({ nbf: seconds() + 60 }),
  'a time of issue in the future': () => issuer.sign({ iat: seconds() + 60 }),
  'no expiry': () => issuer.signText(`{"iss":"${issuer.url}","aud":"${audience}","sub":"anna"}`),
  'an expiry that is no number': () =>
    issuer.signText(`{"iss":"${issuer.url}","aud":"${audience}","sub":"anna","exp":"9999999999"}`),
  'an endless expiry': () =>
    issuer.signText(`{"iss":"${issuer.url}","aud":"${audience}","sub":"anna","exp":1e999}`),
  'no subject': () => issuer.signText(`{"iss":"${issuer.url}","aud":"${audience}","exp":${seconds() + 60}}`),
  'an empty subject': () => issuer.sign({ sub: '' }),
  'a subject with a line break': () => issuer.sign({ sub: 'anna\n' }),
  'another type': () => issuer.sign({}, { typ: 'logout+jwt' }),
  'a type that is no text': () => issuer.sign({}, { typ: 5 }),
  'a key of the client': () => issuer.sign({ cnf: { jkt: 'x' } }),
  'an unknown key id': () => issuer.sign({}, { kid: 'unknown' }),
  'a key id with a path': () => issuer.sign({}, { kid: '../../../../dev/null' }),
  'a critical header': () => issuer.sign({}, { crit: ['x'], x: 1 }),
  'a key in its header': () => selfSigned((jwk) => ({ jwk })),
  'the URL of keys in its header': () =>
    selfSigned(() => ({ jku: 'http://127.0.0.1:1/jwks', x5u: 'http://127.0.0.1:1/' })),
  'a certificate in its header': () => selfSigned(() => ({ x5c: ['MIIB'] })),
  'a truncated signature': async () => (await issuer.sign()).slice(0, -8),
  'a changed claim': async () => changed(await issuer.sign(), { sub: 'bob' }),
  'four parts': async () => `${await issuer.sign()}.x`,
  'parts that are no JSON': async () => 'eyJhbGciOiJSUzI1NiJ9.eyJhbGci.eyJhbGci',
}

/** Replaces claims without a new signature. */
function changed(token: string, claims: object): string {
  const [header = '', payload = '', signature = ''] = token.split('.')
  const before: object = JSON.parse(Buffer.from(payload, 'base64url').toString())
  return [header, json({ ...before, ...claims }), signature].join('.')
}

/** A token with the key id of the issuer, signed with a key of the attacker. */
async function selfSigned(header: (jwk: object) => object): Promise<string> {
  const { exportJWK, generateKeyPair, SignJWT } = await import('jose')
  const { privateKey, publicKey } = await generateKeyPair('RS256')
  const { kid = '' } = issuer.publicKey()
  return new SignJWT({ iss: issuer.url, aud: audience, sub: 'anna', exp: seconds() + 60 })
    .setProtectedHeader({ alg: 'RS256', kid, ...header(await exportJWK(publicKey)) })
    .sign(privateKey)
}

test.each(Object.keys(hostile))('J2 a JWT with %s is refused, without a reason', async (what) => {
  const token = (await hostile[what]?.()) ?? ''
  for (const path of ['/api/media', '/api/media?page=1&x', '/api/token']) {
    const response = await send(token, path)
    expect(response.headers.get('www-authenticate')).toBe(
      'Bearer realm="mediabucket", error="invalid_token", error_description="The token is not accepted"',
    )
    const { detail, errors } = await expectProblem(response, 401, 'token-refused')
    expect([detail, errors]).toEqual(['This is not a valid token of the issuer for this service.', undefined])
  }
})

test('J2 a JWT of more than 8,192 characters is refused before it is parsed; one of 1 MB is no request', async () => {
  const long = await issuer.sign({ padding: 'x'.repeat(6_000) })
  await expectProblem(await send(long), 401, 'token-malformed')
  expect((await send('x.'.repeat(500_000))).status).toBe(431)
})

test('J2 a JWT fails from its expiry on, also if it has been verified before', async () => {
  const token = await issuer.sign({ sub: 'late', exp: seconds() + 2 })
  expect((await send(token)).status).toBe(200)
  await until('the token has expired', async () => (await send(token)).status === 401)
  const response = await send(token)
  expect(response.headers.get('www-authenticate')).toContain('error="invalid_token"')
  await expectProblem(response, 401, 'token-expired')
})

test('J2 of a claim that occurs twice, the last one counts', async () => {
  const twice = `{"iss":"${issuer.url}","aud":"${audience}","sub":"first","sub":"second","scope":"media:read","exp":${seconds() + 60}}`
  const token = await issuer.signText(twice)
  expect(await describeToken(token)).toMatchObject({ name: 'second', bucket: 'user-second' })
})

test.each([
  ['the last of several audiences', { aud: ['https://a.example.org', audience] }, {}],
  ['the type JWT', {}, { typ: 'JWT' }],
  ['the whole media type', {}, { typ: 'application/at+jwt' }],
  ['no type', {}, { typ: undefined }],
])('J2 a JWT with %s is accepted', async (_what, claims, header) => {
  expect((await send(await issuer.sign(claims, header))).status).toBe(200)
})

test.each([
  ['an array', ['media:read', 'media:delete', 5, 'x'], ['media:read', 'media:delete']],
  ['a text with spaces', 'media:write  openid', ['media:write']],
  ['tokens:manage, which the settings do not allow', 'media:read tokens:manage', ['media:read']],
  ['other scopes only', 'openid', []],
  ['no text and no array', { 'media:read': true }, []],
  ['names of members of objects', '__proto__ constructor', []],
])('J3 the scopes are %s', async (_what, scope, scopes) => {
  expect((await describeToken(await issuer.sign({ scope }))).scopes).toEqual(scopes)
})

test('J4 subjects that differ only in case, in signs or at their end have different buckets', async () => {
  const long = 'a'.repeat(80)
  const subjects = ['jo', 'Jo', 'JO', 'j-o', 'j--o', 'j.o', 'jö', 'jo\u0308', 'auth0|1', 'auth0-1', 'x--jo']
  const buckets: string[] = []
  for (const sub of [...subjects, `${long}a`, `${long}b`, ` jo`, '../jo', 'constructor']) {
    const described = await describeToken(await issuer.sign({ sub }))
    expect(described.name).toBe(sub)
    buckets.push(described.bucket)
  }
  expect(new Set(buckets).size).toBe(buckets.length)
  expect(buckets.slice(0, 2)).toEqual(['user-jo', 'user-x---4ao'])
  expect(buckets.filter((name) => !/^user-[a-z0-9][a-z0-9-]{0,57}$/.test(name))).toEqual([])
})

test('J5 concurrent first requests create one bucket, and one row of the user', async () => {
  const token = await issuer.sign({ sub: 'crowd' })
  const responses = await Promise.all(Array.from({ length: 20 }, () => send(token, '/api/token')))
  expect(new Set(responses.map(({ status }) => status))).toEqual(new Set([200]))
  const ids = await Promise.all(responses.map(async (response) => readToken(await response.json()).id))
  expect(new Set(ids).size).toBe(1)
  const { stdout } = await server.command('token', 'list', '--bucket', 'user-crowd')
  expect(stdout.match(/usr_\w+/g)).toEqual([ids[0]])
  expect(await (await send(token, '/api/bucket')).json()).toMatchObject({
    max_bytes: 1_000_000,
    private: true,
  })
})

test('J5 a deleted bucket is gone at once, and is created again by the next request', async () => {
  const token = await issuer.sign({ sub: 'gone' })
  await store(token, 'x')
  const before = await describeToken(token)
  await server.command('bucket', 'delete', 'user-gone', '--yes')
  expect(await listed(token)).toMatchObject({ total: 0 })
  expect((await describeToken(token)).id).not.toBe(before.id)
})

test('J7 a revoked user fails with the next request, with every JWT, in every process', async () => {
  const token = await issuer.sign({ sub: 'revoked' })
  const { id } = await describeToken(token)
  await server.command('token', 'revoke', id)
  for (const one of [token, await issuer.sign({ sub: 'revoked' }), token, token])
    await expectProblem(await send(one), 401, 'token-revoked')
})

test('J6 an Idempotency-Key belongs to the user, whatever JWT the request has', async () => {
  const put = async (exp: number, sub = 'twice') =>
    readMedia(
      await send(await issuer.sign({ sub, exp }), '/api/media', {
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
  await expectProblem(await send(`${token}x`), 401, 'token-malformed')
  await expectProblem(await send('no-token'), 401, 'token-malformed')
})

test('J8 while the issuer is down, its tokens are accepted; O3 no token is in the log', async () => {
  issuer.setReachable(false)
  const token = await issuer.sign({ sub: 'outage' })
  expect((await send(token)).status).toBe(200)
  issuer.setReachable(true)
  const [header = '', payload = '', signature = ''] = token.split('.')
  await until('a refusal is logged', () => server.log().some(({ reason }) => reason === 'the value of aud'))
  for (const part of [header, payload, signature, 'anna'])
    expect(server.stderr()).not.toContain(part.slice(0, 30))
})

test('J3, J5, J8 other settings; the start does not wait for the issuer', async () => {
  await using other = await startIssuer()
  other.setReachable(false)
  await using strict = await startServer({
    ...other.settings,
    MEDIABUCKET_JWT_BUCKET: '{/app/tenant}-media',
    MEDIABUCKET_JWT_SCOPES: '/app/roles',
    MEDIABUCKET_JWT_DEFAULT_SCOPES: 'media:read',
    MEDIABUCKET_JWT_MANAGE_TOKENS: 'on',
  })
  const app = { tenant: 'blue', roles: ['media:read', 'media:write', 'tokens:manage'] }
  const token = await other.sign({ app })
  const unavailable = await send(token, '/api/media', {}, strict)
  expect(unavailable.headers.get('retry-after')).toBe('2')
  await expectProblem(unavailable, 503, 'issuer-unavailable')
  expect((await strict.request('/api/media')).status).toBe(200)
  other.setReachable(true)
  await until(
    'the keys are received',
    async () => (await send(token, '/api/media', {}, strict)).status !== 503,
  )

  // No bucket is created.
  await expectProblem(await send(token, '/api/media', {}, strict), 403, 'bucket-unknown')
  await strict.command('bucket', 'create', 'blue-media')
  expect(await describeToken(token, strict)).toMatchObject({ bucket: 'blue-media', scopes: app.roles })
  for (const tenant of [undefined, '', 5, ['blue'], { blue: 1 }])
    await expectProblem(
      await send(await other.sign({ app: { tenant } }), '/api/media', {}, strict),
      403,
      'bucket-unknown',
    )
  const plain = await other.sign({ sub: 'bob', app: { tenant: 'blue' } })
  expect((await describeToken(plain, strict)).scopes).toEqual(['media:read'])

  // T4 to T8 with a user.
  const manage = (method: string, path: string, body?: object) =>
    send(
      token,
      `/api/tokens${path}`,
      {
        method,
        ...(body && { body: JSON.stringify(body), headers: { 'content-type': 'application/json' } }),
      },
      strict,
    )
  const created = readCreatedToken(await (await manage('POST', '', { scopes: ['media:read'] })).json())
  expect((await send(created.token, '/api/media', {}, strict)).status).toBe(200)
  await expectProblem(await manage('POST', '', { scopes: ['media:delete'] }), 403, 'scope-missing')
  const { data } = readTokenList(await (await manage('GET', '')).json())
  expect(data.map(({ name, scopes }) => [name, scopes])).toEqual([
    ['anna', []],
    ['bob', []],
    ['', ['media:read']],
  ])
  const [own, bob] = data
  await expectProblem(
    await manage('POST', `/${own?.id}/rotate`, { expires_at: null }),
    409,
    'managed-token-inactive',
  )
  expect((await manage('DELETE', `/${bob?.id}`)).status).toBe(204)
  await expectProblem(await send(plain, '/api/media', {}, strict), 401, 'token-revoked')

  await strict.command('bucket', 'delete', 'blue-media', '--yes')
  await expectProblem(await send(token, '/api/media', {}, strict), 403, 'bucket-unknown')
})
