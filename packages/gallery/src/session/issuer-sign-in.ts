import * as oauth from 'oauth4webapi'
import type { IssuerInfo, IssuerMetadata } from '../service/sign-in-info.ts'
import { serviceUrl } from '../service/urls.ts'
import { loadIssuer, type PendingSignIn, storePending } from './issuer.ts'
import { type StoredSession, sessionLength } from './stored-session.ts'

// Loaded only by people who sign in with the issuer.

/** The page's own address, without hash and query. */
const redirectUri = () => serviceUrl().href

/** Leaves the page for that of the issuer: authorization code with PKCE, state and nonce. */
export async function beginSignIn(issuer: IssuerInfo, everyTab: boolean): Promise<void> {
  const { client_id, scope, parameters } = issuer
  const metadata = issuer.metadata ?? (await reachedIssuer()).metadata
  const pending = {
    state: oauth.generateRandomState(),
    nonce: oauth.generateRandomNonce(),
    codeVerifier: oauth.generateRandomCodeVerifier(),
    everyTab,
    hash: location.hash,
  }
  const url = new URL(metadata.authorization_endpoint)
  const own = {
    client_id,
    redirect_uri: redirectUri(),
    response_type: 'code',
    scope,
    state: pending.state,
    nonce: pending.nonce,
    code_challenge: await oauth.calculatePKCECodeChallenge(pending.codeVerifier),
    code_challenge_method: 'S256',
  }
  for (const [name, value] of Object.entries({ ...parameters, ...own })) url.searchParams.set(name, value)
  storePending(pending)
  location.assign(url)
}

/** Exchanges the code of the response for a token. Rejects if the response is not one to this sign-in. */
export async function finishSignIn(
  parameters: URLSearchParams,
  pending: PendingSignIn,
): Promise<StoredSession> {
  const { metadata, client, resource } = await requireIssuer()
  const response = await oauth.authorizationCodeGrantRequest(
    metadata,
    client,
    oauth.None(),
    oauth.validateAuthResponse(metadata, client, parameters, pending.state),
    redirectUri(),
    pending.codeVerifier,
    { ...requestOptions(metadata), additionalParameters: resource },
  )
  const result = await oauth.processAuthorizationCodeResponse(metadata, client, response, {
    expectedNonce: pending.nonce,
  })
  return sessionOf(result, null, Date.now() + sessionLength)
}

/** Replaces the token of a session. If the issuer refuses, rejects with an error for which isRefusal returns true. */
export async function renew(session: StoredSession): Promise<StoredSession> {
  const { metadata, client, resource } = await requireIssuer()
  const refreshToken = session.renewal?.refreshToken ?? ''
  const response = await oauth.refreshTokenGrantRequest(metadata, client, oauth.None(), refreshToken, {
    ...requestOptions(metadata),
    additionalParameters: resource,
  })
  const result = await oauth.processRefreshTokenResponse(metadata, client, response)
  return sessionOf(result, refreshToken, session.until)
}

/** Revokes a refresh token (RFC 7009), if the issuer offers that. */
export async function revokeRefreshToken(refreshToken: string): Promise<void> {
  const { metadata, client } = await requireIssuer()
  if (metadata.revocation_endpoint === undefined) return
  const response = await oauth.revocationRequest(metadata, client, oauth.None(), refreshToken, {
    ...requestOptions(metadata),
    additionalParameters: { token_type_hint: 'refresh_token' },
  })
  await oauth.processRevocationResponse(response)
}

export const isRefusal = (error: unknown): boolean =>
  error instanceof oauth.ResponseBodyError ||
  (error instanceof oauth.WWWAuthenticateChallengeError && error.status === 401)

function sessionOf(
  result: oauth.TokenEndpointResponse,
  refreshToken: string | null,
  until: number,
): StoredSession {
  const { access_token, expires_in = 300, refresh_token } = result
  return {
    token: access_token,
    until,
    renewal: {
      expiresAt: Date.now() + expires_in * 1000,
      refreshToken: refresh_token ?? refreshToken,
    },
  }
}

async function requireIssuer() {
  const { metadata, client_id, parameters } = await reachedIssuer()
  const { resource } = parameters
  return {
    metadata,
    client: { client_id },
    // RFC 8707: in token requests too.
    resource: resource === undefined ? {} : { resource },
  }
}

/** How often the service is asked whether it has reached the issuer, one second apart. It tries to reach it every 5 seconds. */
const maxTries = 10

/** Waits until the service has reached the issuer, which it may not have yet when it has just started. */
async function reachedIssuer(): Promise<IssuerInfo & { readonly metadata: IssuerMetadata }> {
  for (let tries = 1; ; tries += 1) {
    const issuer = await loadIssuer()
    if (issuer?.metadata) return { ...issuer, metadata: issuer.metadata }
    if (issuer === null || tries === maxTries)
      throw new Error('the service offers no sign-in, or has not reached the issuer')
    await new Promise((resolve) => setTimeout(resolve, 1000))
  }
}

/** The service has checked that an issuer without TLS is on the own machine. */
const requestOptions = ({ token_endpoint }: IssuerMetadata) => ({
  [oauth.allowInsecureRequests]: token_endpoint.startsWith('http:'),
})
