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
  const jwksUrl = document['jwks_uri']
  if (typeof jwksUrl !== 'string' || !isIssuerUrl(jwksUrl))
    throw new Error(`${url} has no member jwks_uri with an https URL`)
  return { document, jwksUrl }
}
