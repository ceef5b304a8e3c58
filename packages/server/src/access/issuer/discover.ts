import { type Claims, isClaims } from '../../core/claims.ts'
import { isIssuerUrl } from '../../core/issuer-url.ts'
import { fetchJson } from './fetch-json.ts'

/** The discovery document of an issuer (OpenID Connect Discovery 1.0). */
export interface Discovery {
  readonly document: Claims
  readonly jwksUrl: string
}

/** Gets the discovery document. Throws an Error if it is that of another issuer, or names no keys. */
export async function discover(issuer: string): Promise<Discovery> {
  const url = `${issuer.replace(/\/$/, '')}/.well-known/openid-configuration`
  const document = await fetchJson(url)
  if (!isClaims(document)) throw new Error(`${url} is no discovery document`)
  if (document['issuer'] !== issuer)
    throw new Error(`${url} is the discovery document of another issuer than ${issuer}`)
  const jwksUrl = urlOf(document, 'jwks_uri')
  if (jwksUrl === null) throw new Error(`${url} has no member jwks_uri with an https URL`)
  return { document, jwksUrl }
}

/** The member of the document; null if it is not a URL that can be used. */
function urlOf(document: Claims, name: string): string | null {
  const url = document[name]
  return typeof url === 'string' && isIssuerUrl(url) ? url : null
}

/** What a client in the browser needs of the document; null if the issuer has no authorization code flow. */
export function clientMetadata(issuer: string, { document }: Discovery): ClientMetadata | null {
  const authorizationEndpoint = urlOf(document, 'authorization_endpoint')
  const tokenEndpoint = urlOf(document, 'token_endpoint')
  if (authorizationEndpoint === null || tokenEndpoint === null) return null
  const revocationEndpoint = urlOf(document, 'revocation_endpoint')
  const algorithms = document['id_token_signing_alg_values_supported']
  return {
    issuer,
    authorization_endpoint: authorizationEndpoint,
    token_endpoint: tokenEndpoint,
    ...(revocationEndpoint !== null && { revocation_endpoint: revocationEndpoint }),
    id_token_signing_alg_values_supported: Array.isArray(algorithms)
      ? algorithms.filter((name) => typeof name === 'string')
      : [],
    authorization_response_iss_parameter_supported:
      document['authorization_response_iss_parameter_supported'] === true,
  }
}

/** Members of the discovery document, with their names. */
export interface ClientMetadata {
  readonly issuer: string
  readonly authorization_endpoint: string
  readonly token_endpoint: string
  readonly revocation_endpoint?: string
  readonly id_token_signing_alg_values_supported: readonly string[]
  readonly authorization_response_iss_parameter_supported: boolean
}
