import {
  createHash,
  createPrivateKey,
  generateKeyPairSync,
  type JsonWebKey,
  randomBytes,
  sign,
} from 'node:crypto'
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import Provider, { type Configuration, type JWKS } from 'oidc-provider'
import { Type } from 'typebox'
import { Value } from 'typebox/value'

/** The audience of the service, a resource indicator (RFC 8707). */
export const audience = 'https://media.example.org'

/** Where the public client is sent after a sign-in without a browser. */
const ownRedirect = 'http://127.0.0.1/callback'

const Tokens = Type.Object({ access_token: Type.String(), refresh_token: Type.Optional(Type.String()) })

const ourScopes = 'media:read media:write media:delete tokens:manage'

/** A real OpenID Connect provider on a free port of this process. Every user name is accepted, without a password. */
export interface TestIssuer extends AsyncDisposable {
  readonly url: string
  /** The settings of a service that accepts its tokens. */
  readonly settings: Readonly<Record<string, string>>
  /** A token of a program, by client credentials. Its subject is `backend`. */
  clientToken(scope: string): Promise<string>
  /** The tokens of a person, by the authorization code flow with PKCE. */
  signIn(user: string, scope?: string): Promise<{ access_token: string; refresh_token?: string }>
  /** Signs any claims with the current key. Those that are left out are valid ones. */
  sign(claims?: object, header?: object): Promise<string>
  /** As sign, with exactly this text as the claims. */
  signText(claims: string): Promise<string>
  /** The public part of the current key. */
  publicKey(): JsonWebKey & { readonly kid: string }
  /** Allows another redirect URI of the public client `gallery`. */
  allowRedirect(uri: string): void
  /** Replaces the signing key. The issuer publishes the earlier one no longer, unless `keepsEarlier`. */
  rotateKey(options?: { readonly keepsEarlier: boolean }): void
  /** While it is not reachable, it closes connections without a response. */
  setReachable(reachable: boolean): void
  /** The number of requests for the keys so far. */
  keyRequests(): number
}

/** `tokenLifetime` is in seconds. */
export async function startIssuer(
  options: { readonly tokenLifetime?: number; readonly refreshTokens?: boolean } = {},
): Promise<TestIssuer> {
  const { tokenLifetime = 300, refreshTokens = true } = options
  const redirectUris = [ownRedirect]
  let reachable = true
  let keyRequests = 0
  let key = newKey()
  let published = [key]

  const server = createServer((request, response) => {
    if (!reachable) return void request.socket.destroy()
    if (request.url === '/jwks') keyRequests += 1
    if (request.url?.startsWith('/interaction/')) void signInPage(provider, request, response)
    else void provider.callback()(request, response)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const create = () =>
    new Provider(url, configuration({ keys: published }, redirectUris, tokenLifetime, refreshTokens))
  let provider = create()

  const requestToken = async (fields: Readonly<Record<string, string>>) => {
    const response = await fetch(`${url}/token`, { method: 'POST', body: new URLSearchParams(fields) })
    if (!response.ok) throw new Error(`the issuer responded with ${await response.text()}`)
    return Value.Parse(Tokens, await response.json())
  }

  /** Signs anything, as libraries for issuers do not. */
  async function signText(claims: string, header: object = {}): Promise<string> {
    const head = JSON.stringify({ alg: 'RS256', kid: key.kid, ...header })
    const signed = [head, claims].map((part) => Buffer.from(part).toString('base64url')).join('.')
    const digest = head.includes('"RS512"') ? 'sha512' : 'sha256'
    const signature = sign(digest, Buffer.from(signed), createPrivateKey({ key, format: 'jwk' }))
    return `${signed}.${signature.toString('base64url')}`
  }

  return {
    url,
    settings: { MEDIABUCKET_JWT_ISSUER: url, MEDIABUCKET_JWT_AUDIENCE: audience },

    async clientToken(scope) {
      const client = { client_id: 'backend', client_secret: 'backend-secret' }
      const fields = { grant_type: 'client_credentials', resource: audience, scope }
      return (await requestToken({ ...client, ...fields })).access_token
    },

    async signIn(user, scope = `openid ${ourScopes}`) {
      const verifier = randomBytes(32).toString('base64url')
      const query = new URLSearchParams({
        client_id: 'gallery',
        response_type: 'code',
        redirect_uri: ownRedirect,
        scope,
        resource: audience,
        state: 'state',
        code_challenge: createHash('sha256').update(verifier).digest('base64url'),
        code_challenge_method: 'S256',
      })
      const code = await followSignIn(`${url}/auth?${query}`, user)
      return requestToken({
        grant_type: 'authorization_code',
        client_id: 'gallery',
        redirect_uri: ownRedirect,
        code_verifier: verifier,
        code,
      })
    },

    async sign(claims = {}, header = {}) {
      const now = Math.floor(Date.now() / 1000)
      const payload = { iss: url, aud: audience, sub: 'anna', iat: now, exp: now + 300, scope: ourScopes }
      return signText(JSON.stringify({ ...payload, ...claims }), { typ: 'at+jwt', ...header })
    },

    signText,

    publicKey: () => ({ kty: 'RSA', n: key.n ?? '', e: key.e ?? '', kid: key.kid }),

    allowRedirect(uri) {
      redirectUris.push(uri)
      provider = create()
    },

    rotateKey({ keepsEarlier } = { keepsEarlier: false }) {
      key = newKey()
      published = [key, ...(keepsEarlier ? published : [])]
      provider = create()
    },

    setReachable(next) {
      reachable = next
    },

    keyRequests: () => keyRequests,

    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
}

function newKey() {
  const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
  const kid = randomBytes(8).toString('hex')
  return { ...privateKey.export({ format: 'jwk' }), kty: 'RSA', kid, alg: 'RS256', use: 'sig' }
}

const configuration = (
  jwks: JWKS,
  redirectUris: string[],
  tokenLifetime: number,
  refreshTokens: boolean,
): Configuration => ({
  jwks,
  cookies: { keys: ['for tests only'] },
  clients: [
    {
      client_id: 'gallery',
      token_endpoint_auth_method: 'none',
      redirect_uris: redirectUris,
      post_logout_redirect_uris: redirectUris,
      grant_types: ['authorization_code', ...(refreshTokens ? ['refresh_token'] : [])],
      response_types: ['code'],
    },
    {
      client_id: 'backend',
      client_secret: 'backend-secret',
      token_endpoint_auth_method: 'client_secret_post',
      redirect_uris: [],
      grant_types: ['client_credentials'],
      response_types: [],
    },
  ],
  clientBasedCORS: () => true,
  pkce: { required: () => true },
  features: {
    devInteractions: { enabled: false },
    clientCredentials: { enabled: true },
    revocation: { enabled: true },
    resourceIndicators: {
      enabled: true,
      defaultResource: () => audience,
      useGrantedResource: () => true,
      getResourceServerInfo: () => ({
        scope: ourScopes,
        audience,
        accessTokenFormat: 'jwt',
        accessTokenTTL: tokenLifetime,
        jwt: { sign: { alg: 'RS256' } },
      }),
    },
  },
  ttl: {
    AccessToken: tokenLifetime,
    ClientCredentials: tokenLifetime,
    Session: 3600,
    Grant: 3600,
    Interaction: 600,
    RefreshToken: 3600,
    IdToken: tokenLifetime,
  },
  interactions: { url: (_context, { uid }) => `/interaction/${uid}` },
  findAccount: (_context, id) => ({ accountId: id, claims: () => ({ sub: id }) }),
  // A page that is reloaded during a renewal would lose the new one.
  rotateRefreshToken: false,
  issueRefreshToken: async (_context, client) => client.grantTypeAllowed('refresh_token'),
  // Instead of a question to the person.
  async loadExistingGrant({ oidc }) {
    const { client, session, provider } = oidc
    if (!client || !session?.accountId) return undefined
    const grant = new provider.Grant({ clientId: client.clientId, accountId: session.accountId })
    grant.addOIDCScope('openid offline_access')
    grant.addResourceScope(audience, ourScopes)
    await grant.save()
    return grant
  },
})

/** Asks for the user name, and continues the sign-in with it. */
async function signInPage(
  provider: Provider,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  if (request.method !== 'POST') {
    response.writeHead(200, { 'content-type': 'text/html; charset=utf-8' })
    response.end(
      '<!doctype html><html lang="en"><title>Issuer</title><form method="post"><label>User <input name="user" required></label><button>Continue</button></form></html>',
    )
    return
  }
  const accountId = new URLSearchParams(await text(request)).get('user') ?? ''
  await provider.interactionFinished(request, response, { login: { accountId } })
}

/** Does what a browser does, and returns the code. */
async function followSignIn(start: string, user: string): Promise<string> {
  const cookies = new Map<string, string>()
  let url = start
  let form: URLSearchParams | null = null
  for (let steps = 0; steps < 10; steps += 1) {
    const cookie = [...cookies].map(([name, value]) => `${name}=${value}`).join('; ')
    const response: Response = await fetch(url, {
      redirect: 'manual',
      headers: { cookie },
      ...(form === null ? {} : { method: 'POST', body: form }),
    })
    for (const line of response.headers.getSetCookie()) {
      const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(line) ?? []
      cookies.set(name, value)
    }
    const location = response.headers.get('location')
    form = location === null ? new URLSearchParams({ user }) : null
    url = new URL(location ?? url, url).href
    const code = new URL(url).searchParams.get('code')
    if (code !== null) return code
    if (response.status >= 400) throw new Error(`the issuer responded with ${await response.text()}`)
  }
  throw new Error('the issuer did not end the sign-in')
}
