import { nearestName } from '@mediabucket/cli/nearest-name'
import type { IssuerSettings } from '../core/issuer.ts'
import { hasLittleMemory } from '../storage/memory.ts'
import { ConfigError } from './environment.ts'
import { littleMemoryDefaults, prefix, readAll, type SettingValues, settings } from './settings.ts'

/** All settings of the service, validated and frozen. */
export interface Config extends SettingValues {
  /** Null where only tokens of the service are accepted. */
  readonly issuer: IssuerSettings | null
  /** The PATH, in which the programs for pictures are found. */
  readonly searchPath: string
}

/** With those of the commands that use a service over HTTP, which all others ignore without a warning. */
const knownNames: ReadonlySet<string> = new Set([
  ...Object.keys(settings),
  'MEDIABUCKET_URL',
  'MEDIABUCKET_TOKEN',
])

/** Reads the settings from the environment. `warnings` are for the log. Throws ConfigError. */
export function readConfig(
  env: Readonly<Record<string, string | undefined>> = process.env,
  isLittle = hasLittleMemory,
): { config: Config; warnings: string[] } {
  const faults: string[] = []

  const values = readAll((name, { reader, defaultText, defaultValue, isSecret }) => {
    // An empty variable counts as unset, because compose files pass an unset variable as an empty one.
    const text = env[name]?.trim() || (isLittle && littleMemoryDefaults[name]) || defaultText
    const value = reader.read(text)
    if (value !== undefined) return value
    faults.push(
      `${name} ${isSecret ? 'is malformed' : `is ${JSON.stringify(text)}`}; it must be ${reader.accepts}.`,
    )
    return defaultValue
  })
  const config = { ...values, issuer: issuerOf(values, faults), searchPath: env['PATH'] ?? '' }
  const base = config.baseUrl ?? defaultBaseUrl(config.host, config.port)
  if (config.mediaBaseUrl !== null && new URL(config.mediaBaseUrl).host === new URL(base).host)
    faults.push(
      `MEDIABUCKET_MEDIA_BASE_URL is "${config.mediaBaseUrl}"; it must be on another host than ${base}, the base URL.`,
    )
  if (config.s3Port === config.port && config.port !== 0)
    faults.push(`MEDIABUCKET_S3_PORT is "${config.port}"; it must be another port than MEDIABUCKET_PORT.`)
  const { sendfile, blobsUrl } = config
  if (sendfile?.header === 'location' && blobsUrl === null)
    faults.push('MEDIABUCKET_SENDFILE is redirect; that needs an S3 store in MEDIABUCKET_BLOBS_URL.')
  if (sendfile?.header === 'x-sendfile' && blobsUrl !== null)
    faults.push('MEDIABUCKET_SENDFILE is x-sendfile; with MEDIABUCKET_BLOBS_URL, no files are on the disk.')
  const unknown = Object.keys(env).filter(
    (name) => name.startsWith(prefix) && env[name]?.trim() && !knownNames.has(name),
  )
  const refused = new Map(unknown.map((name) => [name, refusalOf(name)]))
  for (const refusal of refused.values()) if (refusal !== null) faults.push(refusal)
  if (faults.length > 0) throw new ConfigError(faults)

  const warnings = unknown.map((name) => `${name} is not a setting of Mediabucket and is ignored.`)
  if (config.baseUrl === null && !isLoopback(config.host)) {
    warnings.push(
      `The service listens on ${config.host}, and URLs in its responses begin with ${defaultBaseUrl(config.host, config.port)}. ` +
        'Set MEDIABUCKET_BASE_URL to the address that clients use.',
    )
  }
  return { config: Object.freeze(config), warnings }
}

/** How tokens of the issuer are verified; null if there is none. Adds settings that do not fit each other to `faults`. */
function issuerOf(values: SettingValues, faults: string[]): IssuerSettings | null {
  const { jwtIssuer: issuer, jwtAudience: audience, jwtJwksUrl: jwksUrl, oidcClientId: clientId } = values
  if (issuer === null) {
    if (clientId !== null)
      faults.push('MEDIABUCKET_OIDC_CLIENT_ID is set; that needs MEDIABUCKET_JWT_ISSUER.')
    else if (audience !== null || jwksUrl !== null)
      faults.push(
        'MEDIABUCKET_JWT_AUDIENCE or MEDIABUCKET_JWT_JWKS_URL is set; that needs MEDIABUCKET_JWT_ISSUER.',
      )
    return null
  }
  if (audience === null) {
    faults.push(
      'MEDIABUCKET_JWT_ISSUER is set; that needs MEDIABUCKET_JWT_AUDIENCE, because the issuer also signs tokens for other services.',
    )
    return null
  }
  const { scope = 'openid media:read media:write media:delete', ...parameters } = values.oidcParameters
  return {
    issuer,
    jwksUrl,
    audience,
    bucket: values.jwtBucket,
    newBuckets: values.jwtCreateBuckets ? values.jwtBucketOptions : null,
    scopesClaim: values.jwtScopes,
    defaultScopes: values.jwtDefaultScopes,
    signIn: clientId === null ? null : { clientId, name: new URL(issuer).host, scope, parameters },
  }
}

/**
 * Why an unknown setting stops the start: it is probably a typing error, or it may decide who has access. Null for others, such as the
 * variables that Kubernetes sets for a service.
 */
function refusalOf(unknown: string): string | null {
  const what = `${unknown} is not a setting of Mediabucket.`
  const similar = similarSetting(unknown)
  if (similar !== null) return `${what} Did you mean ${similar}?`
  return unknown.startsWith(`${prefix}JWT_`) ? `${what} See: mediabucket help settings` : null
}

/** The setting of which an unknown name is probably a typing error, or of which it is the beginning; null if there is none. */
function similarSetting(unknown: string): string | null {
  const name = unknown.slice(prefix.length)
  const known = [...knownNames].map((full) => full.slice(prefix.length))
  const longer = known.filter((candidate) => candidate.startsWith(`${name}_`))
  const [similar = null] = longer.length === 1 ? longer : [nearestName(name, known)]
  return similar && prefix + similar
}

const isLoopback = (host: string) =>
  host === 'localhost' || host === '::1' || /^127\.\d+\.\d+\.\d+$/.test(host)

/** The URL of a service on this host and port, as seen from its own machine. */
export function defaultBaseUrl(host: string, port: number): string {
  const reachable = host === '0.0.0.0' || host === '::' ? '127.0.0.1' : host
  return `http://${reachable.includes(':') ? `[${reachable}]` : reachable}:${port}`
}
