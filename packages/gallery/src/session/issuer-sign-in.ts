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
  const { metadata, client_id, scope, parameters } = issuer
  if (metadata === null) throw new Error('the service has not reached the issuer')
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
  const issuer = await loadIssuer()
  if (!issuer?.metadata) throw new Error('the service offers no sign-in with the issuer')
  const { resource } = issuer.parameters
  return {
    metadata: issuer.metadata,
    client: { client_id: issuer.client_id },
    // RFC 8707: in token requests too.
    resource: resource === undefined ? {} : { resource },
  }
}

/** The service has checked that an issuer without TLS is on the own machine. */
const requestOptions = ({ token_endpoint }: IssuerMetadata) => ({
  [oauth.allowInsecureRequests]: token_endpoint.startsWith('http:'),
})
