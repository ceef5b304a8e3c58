import { afterAll, beforeAll, expect, test } from 'vitest'
import { audience, startIssuer, type TestIssuer } from '../harness/issuer.ts'
import { expectProblem } from '../harness/problem.ts'
import type { TestServer } from '../harness/server.ts'
import { until } from '../harness/until.ts'
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

const json = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url')

// Before tests with unknown keys, after which no keys are requested for 30 seconds.
test('J8 after a rotation of its keys, new tokens of the issuer are accepted, and tokens of the earlier key not', async () => {
  const old = await issuer.sign({ sub: 'rotated', exp: seconds() + 100 })
  issuer.rotateKey()
  const fresh = await issuer.sign({ sub: 'rotated' })
  // A process accepts a connection when it is idle, so possibly all connections are of one process.
  const statuses = async (token: string) => {
    const all = await Promise.all(Array.from({ length: 20 }, () => send(server, token)))
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
    const response = await send(server, token, path)
    expect(response.headers.get('www-authenticate')).toBe(
      'Bearer realm="mediabucket", error="invalid_token", error_description="The token is not accepted"',
    )
    const { detail, errors } = await expectProblem(response, 401, 'token-refused')
    expect([detail, errors]).toEqual(['This is not a valid token of the issuer for this service.', undefined])
  }
})

test('J2 a JWT of more than 8,192 characters is refused before it is parsed; one of 1 MB is no request', async () => {
  const long = await issuer.sign({ padding: 'x'.repeat(6_000) })
  await expectProblem(await send(server, long), 401, 'token-malformed')
  expect((await send(server, 'x.'.repeat(500_000))).status).toBe(431)
})

/** The accepted difference between the clocks. Seconds. */
const clockSkew = 30

test('J2 a JWT fails from its expiry on, also if it has been verified before', async () => {
  const token = await issuer.sign({ sub: 'late', exp: seconds() - clockSkew + 4 })
  expect((await send(server, token)).status).toBe(200)
  await until('the token has expired', async () => (await send(server, token)).status === 401)
  const response = await send(server, token)
  expect(response.headers.get('www-authenticate')).toContain('error="invalid_token"')
  await expectProblem(response, 401, 'token-expired')
})

test('J2 of a claim that occurs twice, the last one counts', async () => {
  const twice = `{"iss":"${issuer.url}","aud":"${audience}","sub":"first","sub":"second","scope":"media:read","exp":${seconds() + 60}}`
  const token = await issuer.signText(twice)
  expect(await describeToken(server, token)).toMatchObject({ name: 'second', bucket: 'user-second' })
})

test.each([
  ['the last of several audiences', { aud: ['https://a.example.org', audience] }, {}],
  ['the type JWT', {}, { typ: 'JWT' }],
  ['the whole media type', {}, { typ: 'application/at+jwt' }],
  ['no type', {}, { typ: undefined }],
  ['the last second of the year 9999 as its expiry', { exp: 253_402_300_799 }, {}],
])('J2 a JWT with %s is accepted', async (_what, claims, header) => {
  expect((await send(server, await issuer.sign(claims, header))).status).toBe(200)
})

test.each([
  ['an array', ['media:read', 'media:delete', 5, 'x'], ['media:read', 'media:delete']],
  ['a text with spaces', 'media:write  openid', ['media:write']],
  ['tokens:manage, which no JWT has', 'media:read tokens:manage', ['media:read']],
  ['other scopes only', 'openid', []],
  ['no text and no array', { 'media:read': true }, []],
  ['names of members of objects', '__proto__ constructor', []],
])('J3 the scopes are %s', async (_what, scope, scopes) => {
  expect((await describeToken(server, await issuer.sign({ scope }))).scopes).toEqual(scopes)
})

test('J8 while the issuer is down, its tokens are accepted; O3 no token is in the log', async () => {
  issuer.setReachable(false)
  const token = await issuer.sign({ sub: 'outage' })
  expect((await send(server, token)).status).toBe(200)
  issuer.setReachable(true)
  const [header = '', payload = '', signature = ''] = token.split('.')
  await until('a refusal is logged', () => server.log().some(({ reason }) => reason === 'the value of aud'))
  for (const part of [header, payload, signature, 'anna'])
    expect(server.stderr()).not.toContain(part.slice(0, 30))
})
