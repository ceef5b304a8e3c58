import type { IssuerSettings } from '../core/issuer-settings.ts'
import { nearestName } from '../core/nearest-name.ts'
import type { RequestRate } from '../core/request-rate.ts'
import type { S3Location } from '../core/s3-location.ts'
import type { SendFile } from '../core/send-file.ts'
import type { VariantSize } from '../core/variant.ts'
import { ConfigError } from './config-error.ts'
import { readIssuerSettings } from './issuer-config.ts'
import type { Setting } from './setting.ts'
import { settings, type Values } from './settings.ts'

/** All settings of the service, validated and frozen. Durations are milliseconds, sizes bytes. */
export interface Config {
  readonly host: string
  readonly port: number
  readonly workers: number
  /** Null where it follows host and port. Without a slash at the end. */
  readonly baseUrl: string | null
  /** Null where files are served under the base URL. Without a slash at the end. */
  readonly mediaBaseUrl: string | null
  readonly data: string
  /** Null where the catalog is in the data directory. Contains a password. */
  readonly databaseUrl: string | null
  readonly envelope: 'bare' | 'wrapped'
  readonly extensions: boolean
  readonly links: 'all' | 'window'
  readonly gallery: boolean
  /** 0 for no cache. */
  readonly pageCache: number
  readonly pageLinkCache: number
  readonly bytesCache: number
  /** Null where the service sends all bytes itself. */
  readonly sendFile: SendFile | null
  /** Null if the files are in the data directory. */
  readonly blobsUrl: S3Location | null
  readonly maxFileSize: number
  /** Files of up to this size are stored in the catalog; 0 for none. */
  readonly inlineSize: number
  readonly maxParts: number
  readonly uploadExpiry: number
  /** Null where it follows the size of the file system. */
  readonly minFree: number | null
  readonly corsOrigins: readonly string[]
  readonly trustedProxies: readonly string[]
  /** Null where only tokens of the service are accepted. */
  readonly issuer: IssuerSettings | null
  /** Null where there is no limit. */
  readonly tokenRate: RequestRate | null
  readonly addressRate: RequestRate | null
  readonly authFailureRate: RequestRate | null
  readonly mediaMaxAge: number
  readonly maxLinkLifetime: number
  readonly variants: readonly VariantSize[]
  readonly renderAhead: boolean
  readonly variantProcesses: number
  readonly variantQueue: number
  readonly variantTimeout: number
  /** For one process. */
  readonly variantMemory: number
  readonly variantMegapixels: number
  /** The PATH, in which the programs for pictures are found. */
  readonly searchPath: string
  /** 0 for no limit. */
  readonly maxConnections: number
  readonly maxConnectionsPerAddress: number
  readonly headerTimeout: number
  readonly idleTimeout: number
  /** Bytes per second; 0 for none. */
  readonly minSendRate: number
  readonly shutdownTimeout: number
  readonly audit: 'off' | 'changes' | 'all'
  readonly auditDays: number
  readonly logLevel: string
  /** `auto` is `text` on a terminal, `json` elsewhere. */
  readonly logFormat: 'auto' | 'json' | 'text'
}

const prefix = 'MEDIABUCKET_'

/** With those of the commands that use a service over HTTP, which all others ignore without a warning. */
const knownNames: ReadonlySet<string> = new Set([
  ...Object.keys(settings),
  'MEDIABUCKET_URL',
  'MEDIABUCKET_TOKEN',
])

/** Reads the settings from the environment. `warnings` are for the log. Throws ConfigError. */
export function readConfig(env: Readonly<Record<string, string | undefined>> = process.env): {
  config: Config
  warnings: string[]
} {
  const faults: string[] = []

  /** An empty variable counts as unset, because compose files pass an unset variable as an empty one. */
  function read<Name extends keyof Values>(name: Name): Values[Name] {
    const { reader, defaultText, defaultValue, isSecret }: Setting<Values[Name]> = settings[name]
    const text = env[name]?.trim() || defaultText
    const value = reader.read(text)
    if (value !== undefined) return value
    faults.push(
      `${name} ${isSecret ? 'is malformed' : `is ${JSON.stringify(text)}`}; it must be ${reader.accepts}.`,
    )
    return defaultValue
  }

  const config: Config = {
    host: read('MEDIABUCKET_HOST'),
    port: read('MEDIABUCKET_PORT'),
    workers: read('MEDIABUCKET_WORKERS'),
    baseUrl: read('MEDIABUCKET_BASE_URL'),
    mediaBaseUrl: read('MEDIABUCKET_MEDIA_BASE_URL'),
    data: read('MEDIABUCKET_DATA'),
    databaseUrl: read('MEDIABUCKET_DATABASE_URL'),
    blobsUrl: read('MEDIABUCKET_BLOBS_URL'),
    envelope: read('MEDIABUCKET_ENVELOPE'),
    extensions: read('MEDIABUCKET_EXTENSIONS'),
    links: read('MEDIABUCKET_LINKS'),
    gallery: read('MEDIABUCKET_GALLERY'),
    pageCache: read('MEDIABUCKET_PAGE_CACHE'),
    pageLinkCache: read('MEDIABUCKET_LINK_RIBBON'),
    bytesCache: read('MEDIABUCKET_BYTES_CACHE'),
    sendFile: read('MEDIABUCKET_SENDFILE'),
    maxFileSize: read('MEDIABUCKET_MAX_FILE_SIZE'),
    inlineSize: read('MEDIABUCKET_INLINE_SIZE'),
    maxParts: read('MEDIABUCKET_MAX_PARTS'),
    uploadExpiry: read('MEDIABUCKET_UPLOAD_EXPIRY'),
    minFree: read('MEDIABUCKET_MIN_FREE'),
    corsOrigins: read('MEDIABUCKET_CORS_ORIGINS'),
    trustedProxies: read('MEDIABUCKET_TRUSTED_PROXIES'),
    issuer: readIssuerSettings(read, faults),
    tokenRate: read('MEDIABUCKET_TOKEN_RATE'),
    addressRate: read('MEDIABUCKET_ADDRESS_RATE'),
    authFailureRate: read('MEDIABUCKET_AUTH_FAILURE_RATE'),
    mediaMaxAge: read('MEDIABUCKET_MEDIA_MAX_AGE'),
    maxLinkLifetime: read('MEDIABUCKET_MAX_LINK_LIFETIME'),
    variants: read('MEDIABUCKET_VARIANTS'),
    renderAhead: read('MEDIABUCKET_RENDER_AHEAD'),
    variantProcesses: read('MEDIABUCKET_VARIANT_PROCESSES'),
    variantQueue: read('MEDIABUCKET_VARIANT_QUEUE'),
    variantTimeout: read('MEDIABUCKET_VARIANT_TIMEOUT'),
    variantMemory: read('MEDIABUCKET_VARIANT_MEMORY'),
    variantMegapixels: read('MEDIABUCKET_VARIANT_MEGAPIXELS'),
    searchPath: env['PATH'] ?? '',
    maxConnections: read('MEDIABUCKET_MAX_CONNECTIONS'),
    maxConnectionsPerAddress: read('MEDIABUCKET_MAX_CONNECTIONS_PER_ADDRESS'),
    headerTimeout: read('MEDIABUCKET_HEADER_TIMEOUT'),
    idleTimeout: read('MEDIABUCKET_IDLE_TIMEOUT'),
    minSendRate: read('MEDIABUCKET_MIN_SEND_RATE'),
    shutdownTimeout: read('MEDIABUCKET_SHUTDOWN_TIMEOUT'),
    audit: read('MEDIABUCKET_AUDIT'),
    auditDays: read('MEDIABUCKET_AUDIT_DAYS'),
    logLevel: read('MEDIABUCKET_LOG_LEVEL'),
    logFormat: read('MEDIABUCKET_LOG_FORMAT'),
  }
  const base = config.baseUrl ?? defaultBaseUrl(config.host, config.port)
  if (config.mediaBaseUrl !== null && new URL(config.mediaBaseUrl).host === new URL(base).host)
    faults.push(
      `MEDIABUCKET_MEDIA_BASE_URL is "${config.mediaBaseUrl}"; it must be on another host than ${base}, the base URL.`,
    )
  const { sendFile, blobsUrl } = config
  if (sendFile?.header === 'location' && blobsUrl === null)
    faults.push('MEDIABUCKET_SENDFILE is redirect; that needs an S3 store in MEDIABUCKET_BLOBS_URL.')
  if (sendFile?.header === 'x-sendfile' && blobsUrl !== null)
    faults.push('MEDIABUCKET_SENDFILE is x-sendfile; with MEDIABUCKET_BLOBS_URL, no files are on the disk.')
  const unknown = Object.keys(env).filter(
    (name) => name.startsWith(prefix) && env[name]?.trim() && !knownNames.has(name),
  )
  const misspelled = new Map(unknown.map((name) => [name, similarSetting(name)]))
  for (const [name, known] of misspelled)
    if (known !== null) faults.push(`${name} is not a setting of Mediabucket. Did you mean ${known}?`)
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
