import { once } from 'node:events'
import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { startIssuer, type TestIssuer } from '../../../../test/harness/issuer.ts'
import { IssuerKeys } from '../../src/access/issuer-keys.ts'
import { verifyJwtOperation } from '../../src/access/issuer-users.ts'
import { parseBucketPattern } from '../../src/core/bucket-settings.ts'

let issuer: TestIssuer
beforeAll(async () => {
  issuer = await startIssuer()
})
afterAll(() => issuer[Symbol.asyncDispose]())
beforeEach(() => issuer.setReachable(true))

const minute = 60_000
const hour = 60 * minute

/** Keys of the issuer, with a clock that the test moves. */
function setUp(url = issuer.url, jwksUrl: string | null = null) {
  let now = Date.now()
  const failures: string[] = []
  const settings = {
    issuer: url,
    jwksUrl,
    audience: issuer.settings['MEDIABUCKET_JWT_AUDIENCE'] ?? '',
    bucket: parseBucketPattern('user-{sub}') ?? expect.unreachable(),
    newBuckets: null,
    signIn: null,
    scopesClaim: 'scope',
    defaultScopes: [],
  }
  const keys = new IssuerKeys(settings, {
    now: () => now,
    onFailure: (error) => failures.push(String(error)),
    onSuccess: () => undefined,
  })
  const verify = verifyJwtOperation(settings, { keys, now: () => now, onRefusal: () => undefined })
  /** `valid`, or the code of the fault. */
  const outcomeOf = (token: string) =>
    verify(token).then(
      () => 'valid',
      (fault) => fault.code,
    )
  return {
    keys,
    failures,
    wait(time: number) {
      now += time
    },
    outcomeOf,
    /** Of a new token, whose times are of this clock. */
    outcome: async (header: object = {}) => {
      const iat = Math.floor(now / 1000)
      return outcomeOf(await issuer.sign({ iat, exp: iat + 60 }, header))
    },
  }
}

test('J8 keys are requested once, and again in the background when they are four minutes old', async () => {
  const { keys, outcome, wait } = setUp()
  const before = issuer.keyRequests()
  await Promise.all([keys.refresh(), outcome(), outcome()])
  wait(3 * minute)
  expect(await outcome()).toBe('valid')
  expect(issuer.keyRequests() - before).toBe(1)
  wait(minute)
  expect(await outcome()).toBe('valid')
  await expect.poll(() => issuer.keyRequests() - before).toBe(2)
})

test('J8 after hours without a request, a withdrawn key is refused', async () => {
  const { outcomeOf, wait } = setUp()
  const token = await issuer.sign({ iat: 0, exp: Math.floor((Date.now() + 24 * hour) / 1000) })
  expect(await outcomeOf(token)).toBe('valid')
  issuer.rotateKey()
  wait(23 * hour)
  expect(await outcomeOf(token)).toBe('token-refused')
})

test('J8 without the issuer, keys remain in use for a day; afterwards, tokens cannot be verified until it is back', async () => {
  const { outcome, wait, failures } = setUp()
  expect(await outcome()).toBe('valid')
  issuer.setReachable(false)
  wait(23 * hour)
  expect(await outcome()).toBe('valid')
  await expect.poll(() => failures).toHaveLength(1)
  wait(hour)
  expect(await outcome()).toBe('issuer-unavailable')
  expect(failures).toHaveLength(2)
  issuer.setReachable(true)
  // After a failure, the issuer is left alone for five seconds.
  expect(await outcome()).toBe('issuer-unavailable')
  wait(5_000)
  expect(await outcome()).toBe('valid')
})

test('J8 an unknown key id causes one request in 30 seconds', async () => {
  const { outcome, wait } = setUp()
  await outcome()
  const before = issuer.keyRequests()
  for (let round = 0; round < 5; round += 1) expect(await outcome({ kid: 'x' })).toBe('token-refused')
  expect(issuer.keyRequests() - before).toBe(1)
  wait(30_000)
  expect(await outcome({ kid: 'x' })).toBe('token-refused')
  expect(issuer.keyRequests() - before).toBe(2)
})

test('J8 without the issuer, a token with an unknown key cannot be verified until it is back; known keys remain in use', async () => {
  const { outcome, outcomeOf, wait } = setUp()
  const known = await issuer.sign({ iat: 0 })
  expect(await outcomeOf(known)).toBe('valid')
  issuer.rotateKey()
  issuer.setReachable(false)
  const before = issuer.keyRequests()
  for (let round = 0; round < 3; round += 1) expect(await outcome()).toBe('issuer-unavailable')
  expect(await outcomeOf(known)).toBe('valid')
  issuer.setReachable(true)
  expect(await outcome()).toBe('issuer-unavailable')
  wait(5_000)
  expect(await outcome()).toBe('valid')
  expect(await outcomeOf(known)).toBe('token-refused')
  expect(await outcome({ kid: 'x' })).toBe('token-refused')
  expect(issuer.keyRequests() - before).toBe(1)
})

test('J8 a new key is found when a token has it, and the withdrawn one is refused', async () => {
  const { outcome } = setUp()
  const old = { kid: issuer.publicKey().kid }
  expect(await outcome()).toBe('valid')
  issuer.rotateKey()
  expect(await outcome()).toBe('valid')
  expect(await outcome(old)).toBe('token-refused')
})

test('J2 a token without a key id is verified with each key of the issuer', async () => {
  const { outcomeOf, outcome } = setUp()
  const byEarlier = await issuer.sign({ iat: 0 }, { kid: undefined })
  issuer.rotateKey({ keepsEarlier: true })
  expect(await outcome({ kid: undefined })).toBe('valid')
  expect(await outcomeOf(byEarlier)).toBe('valid')
  const signature = /[^.]+$/
  const other = signature.exec(await issuer.sign({ sub: 'other' }, { kid: undefined }))?.[0] ?? ''
  expect(await outcomeOf(byEarlier.replace(signature, other))).toBe('token-refused')
})

test('J8 the URL of the keys can be set; the discovery document is then not requested', async () => {
  const { outcome, keys } = setUp(issuer.url, `${issuer.url}/jwks`)
  expect(await outcome()).toBe('valid')
  expect(keys.discovery()).toBeNull()
})

const json =
  (body: unknown): RequestListener =>
  (_request, response) =>
    void response.end(JSON.stringify(body))

test.each<[string, (url: string) => RequestListener, RegExp]>([
  [
    'redirects',
    () => (_request, response) =>
      void response.writeHead(302, { location: `${issuer.url}/.well-known/openid-configuration` }).end(),
    /fetch failed/,
  ],
  [
    'responds with an error',
    () => (_request, response) => void response.writeHead(500).end('{}'),
    /status 500/,
  ],
  [
    'responds with no JSON',
    () => (_request, response) => void response.end('<html>'),
    /did not respond with JSON/,
  ],
  [
    'responds without end',
    () => (_request, response) => {
      response.on('error', () => undefined)
      const write = (error?: Error | null): void => {
        if (!error) response.write('x'.repeat(65_536), write)
      }
      write()
    },
    /more than 524288 bytes/,
  ],
  [
    'is another one',
    () => json({ issuer: 'https://issuer.example.org', jwks_uri: 'https://issuer.example.org/jwks' }),
    /another issuer/,
  ],
  [
    'has keys at an address without TLS',
    (url) => json({ issuer: url, jwks_uri: 'http://192.0.2.1/jwks' }),
    /https/,
  ],
  ['has no keys', (url) => json({ issuer: url, jwks_uri: `${url}/jwks` }), /no keys/],
])('J8 an issuer that %s has no keys', async (_what, respond, reason) => {
  const server = createServer((request, response) => listener(request, response))
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const listener = respond(url)
  try {
    const { outcome, failures } = setUp(url)
    expect(await outcome()).toBe('issuer-unavailable')
    expect(failures).toEqual([expect.stringMatching(reason)])
  } finally {
    server.closeAllConnections()
    server.close()
  }
})
