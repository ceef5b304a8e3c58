import type { IssuerSettings, SignInSettings } from '../core/issuer-settings.ts'
import type { Values } from './settings.ts'

type ReadSetting = <Name extends keyof Values>(name: Name) => Values[Name]

/** Reads the settings of the issuer; null if there is none. Adds settings that do not fit each other to `faults`. */
export function readIssuerSettings(read: ReadSetting, faults: string[]): IssuerSettings | null {
  const issuer = read('MEDIABUCKET_JWT_ISSUER')
  const audience = read('MEDIABUCKET_JWT_AUDIENCE')
  const newBuckets = {
    maxItems: read('MEDIABUCKET_JWT_BUCKET_MAX_ITEMS'),
    maxBytes: read('MEDIABUCKET_JWT_BUCKET_MAX_BYTES'),
    isPrivate: read('MEDIABUCKET_JWT_BUCKET_PRIVATE'),
  }
  const settings = {
    jwksUrl: read('MEDIABUCKET_JWT_JWKS_URL'),
    algorithms: read('MEDIABUCKET_JWT_ALGORITHMS'),
    clockSkew: read('MEDIABUCKET_JWT_CLOCK_SKEW'),
    bucket: read('MEDIABUCKET_JWT_BUCKET'),
    newBuckets: read('MEDIABUCKET_JWT_CREATE_BUCKETS') ? newBuckets : null,
    scopesClaim: read('MEDIABUCKET_JWT_SCOPES'),
    defaultScopes: read('MEDIABUCKET_JWT_DEFAULT_SCOPES'),
    managesTokens: read('MEDIABUCKET_JWT_MANAGE_TOKENS'),
    signIn: signInSettings(read, issuer),
  }
  if (issuer !== null && audience !== null) return { issuer, audience, ...settings }
  if (issuer !== null)
    faults.push(
      'MEDIABUCKET_JWT_ISSUER is set; that needs MEDIABUCKET_JWT_AUDIENCE, because the issuer also signs tokens for other services.',
    )
  else if (settings.signIn !== null)
    faults.push('MEDIABUCKET_OIDC_CLIENT_ID is set; that needs MEDIABUCKET_JWT_ISSUER.')
  else if (audience !== null || settings.jwksUrl !== null)
    faults.push(
      'MEDIABUCKET_JWT_AUDIENCE or MEDIABUCKET_JWT_JWKS_URL is set; that needs MEDIABUCKET_JWT_ISSUER.',
    )
  return null
}

/** Null if no client is configured. */
function signInSettings(read: ReadSetting, issuer: string | null): SignInSettings | null {
  const clientId = read('MEDIABUCKET_OIDC_CLIENT_ID')
  const name = read('MEDIABUCKET_OIDC_NAME')
  const scopes = read('MEDIABUCKET_OIDC_SCOPES') ?? ''
  const parameters = read('MEDIABUCKET_OIDC_PARAMETERS')
  if (clientId === null) return null
  return { clientId, name: name ?? (issuer === null ? '' : new URL(issuer).host), scopes, parameters }
}
