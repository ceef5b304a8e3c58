import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { renewedSession } from '../src/session/renewed-session.ts'
import { createSession } from '../src/session/session.ts'
import type { StoredSession } from '../src/session/stored-session.ts'

const key = 'mediabucket.session /'
const issuer = {
  name: 'Example',
  client_id: 'gallery',
  scope: 'openid',
  parameters: {},
  metadata: {
    issuer: 'https://issuer.example',
    authorization_endpoint: 'https://issuer.example/authorize',
    token_endpoint: 'https://issuer.example/token',
    id_token_signing_alg_values_supported: ['RS256'],
    authorization_response_iss_parameter_supported: true,
  },
}
const tokenInfo = {
  id: 'a',
  name: '',
  bucket: 'b',
  scopes: ['media:read'],
  created_at: '',
  expires_at: null,
  note: null,
  limits: null,
  uploaded: null,
  left: null,
}

/** What the browser stores for this tab. */
let storage: Map<string, string>
/** Refresh tokens that the issuer has received. */
let received: (string | null)[]
/** The response of the issuer. */
let respond: () => Response | Promise<Response>
/** The response of the service to a request with this token. */
let whoami: (token: string) => Response | Promise<Response>

const renewed = () =>
  Response.json({ access_token: 'new', token_type: 'bearer', expires_in: 300, refresh_token: 'r-new' })

beforeEach(() => {
  storage = new Map()
  received = []
  respond = renewed
  whoami = () => Response.json(tokenInfo)
  const stored = {
    getItem: (name: string) => storage.get(name) ?? null,
    setItem: (name: string, value: string) => storage.set(name, value),
    removeItem: (name: string) => storage.delete(name),
  }
  const empty = { getItem: () => null, setItem: () => undefined, removeItem: () => undefined }
  vi.stubGlobal('window', { sessionStorage: stored, localStorage: empty })
  vi.stubGlobal('document', { baseURI: 'https://media.example/' })
  vi.stubGlobal('addEventListener', () => undefined)
  vi.stubGlobal(
    'BroadcastChannel',
    class {
      postMessage = () => undefined
    },
  )
  vi.stubGlobal('fetch', async (input: string | URL | Request, init?: RequestInit) => {
    const request = new Request(input, init)
    const { pathname } = new URL(request.url)
    if (pathname === '/sign-in.json') return Response.json({ issuer })
    if (pathname !== '/token') return whoami(request.headers.get('authorization') ?? '')
    received.push(new URLSearchParams(await request.text()).get('refresh_token'))
    return respond()
  })
})
afterEach(() => {
  vi.unstubAllGlobals()
})

const until = Date.now() + 3_600_000

/** A session whose token expires at this time. Milliseconds from now. */
const sessionOf = (token: string, expiry: number): StoredSession => ({
  token,
  until,
  renewal: { expiresAt: Date.now() + expiry, refreshToken: `r-${token}` },
})
const store = (session: StoredSession) => storage.set(key, JSON.stringify(session))
const storedToken = (): unknown => JSON.parse(storage.get(key) ?? '{}').token

test('G25 a session that another tab has renewed, and that is due again, is renewed with its latest refresh token', async () => {
  store(sessionOf('second', 10_000))
  expect(await renewedSession(sessionOf('first', 5_000))).toMatchObject({ token: 'new' })
  expect([received, storedToken()]).toEqual([['r-second'], 'new'])
})

test('G25 a session that another tab has renewed is used without a request; that of another sign-in is not', async () => {
  store(sessionOf('second', 300_000))
  expect(await renewedSession(sessionOf('first', 5_000))).toMatchObject({ token: 'second' })
  expect(received).toEqual([])
  store({ ...sessionOf('other', 300_000), until: until + 1 })
  expect(await renewedSession(sessionOf('first', 5_000))).toMatchObject({ token: 'new' })
  expect([received, storedToken()]).toEqual([['r-first'], 'other'])
})

test.each([
  ['an error of OAuth', () => Response.json({ error: 'invalid_grant' }, { status: 400 })],
  [
    'a 401 with WWW-Authenticate',
    () => new Response('', { status: 401, headers: { 'www-authenticate': 'Basic realm="issuer"' } }),
  ],
])('G25 after a refusal by %s, the latest session is not renewed again', async (_, refusal) => {
  respond = refusal
  store(sessionOf('second', 10_000))
  const refused = await renewedSession(sessionOf('first', 5_000))
  expect(refused).toMatchObject({ token: 'second', renewal: { refreshToken: null } })
  expect(await renewedSession(refused)).toBe(refused)
  expect(received).toEqual(['r-second'])
})

test('G25 an issuer that fails is no refusal', async () => {
  respond = () => new Response('', { status: 503 })
  await expect(renewedSession(sessionOf('first', 5_000))).rejects.toMatchObject({ name: 'ConnectionError' })
})

test('G25 a renewal that ends after the person has signed out, and in with another token, changes nothing', async () => {
  const renewal = Promise.withResolvers<Response>()
  const asked = Promise.withResolvers<void>()
  respond = () => {
    asked.resolve()
    return renewal.promise
  }
  const answer = Promise.withResolvers<Response>()
  whoami = (token) => (token.endsWith('typed') ? answer.promise : Response.json(tokenInfo))
  store(sessionOf('first', 5_000))
  const session = createSession(null)
  const resumed = session.resume()
  await asked.promise
  session.signOut()
  const signedIn = session.signIn('typed', false)
  renewal.resolve(renewed())
  await resumed
  expect([session.state.value.at, storedToken()]).toEqual(['signed-out', undefined])
  answer.resolve(Response.json(tokenInfo))
  await signedIn
  expect(session.state.value).toMatchObject({ at: 'signed-in', signedIn: { token: 'typed' } })
  expect(storedToken()).toBe('typed')
  session.signOut()
})
