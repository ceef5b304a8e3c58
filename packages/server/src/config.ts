import { parseDuration } from './core/duration.ts'
import { parseAddressRanges } from './core/ip-address.ts'
import { nearestName } from './core/nearest-name.ts'
import { parseRequestRate, type RequestRate } from './core/request-rate.ts'
import { parseSize } from './core/size.ts'

/** Everything that can be set, validated and frozen. Durations are milliseconds, sizes bytes. */
export interface Config {
  readonly host: string
  readonly port: number
  /** Null where it follows host and port. Never ends in a slash. */
  readonly baseUrl: string | null
  /** Null where bytes are served under the base URL. Never ends in a slash. */
  readonly mediaBaseUrl: string | null
  readonly data: string
  readonly envelope: 'bare' | 'wrapped'
  readonly extensions: boolean
  readonly links: 'all' | 'window'
  readonly gallery: boolean
  /** Bytes; 0 for no cache. */
  readonly pageCache: number
  readonly pageLinkCache: number
  readonly maxFileSize: number
  readonly maxParts: number
  readonly uploadExpiry: number
  /** Bytes; null where it follows the size of the file system. */
  readonly minFree: number | null
  readonly corsOrigins: readonly string[]
  readonly trustedProxies: readonly string[]
  /** Null where there is no limit. */
  readonly tokenRate: RequestRate | null
  readonly addressRate: RequestRate | null
  readonly authFailureRate: RequestRate | null
  readonly mediaMaxAge: number
  /** Processes that make variants, and how many variants may wait for them. */
  readonly variantProcesses: number
  readonly variantQueue: number
  readonly variantTimeout: number
  /** Of one process. */
  readonly variantMemory: number
  readonly variantMegapixels: number
  /** 0 for no limit. */
  readonly maxConnections: number
  readonly maxConnectionsPerAddress: number
  readonly headerTimeout: number
  readonly idleTimeout: number
  /** Bytes per second; 0 for none. */
  readonly minSendRate: number
  readonly shutdownTimeout: number
  readonly logLevel: string
  /** `auto` is `text` on a terminal, `json` elsewhere. */
  readonly logFormat: 'auto' | 'json' | 'text'
}

interface Setting<T> {
  readonly about: string
  /** What a good value looks like, for people. */
  readonly accepts: string
  readonly fallback: string
  /** Undefined when the text is not accepted. */
  readonly parse: (text: string) => T | undefined
}

const setting = <T>(
  fallback: string,
  accepts: string,
  about: string,
  parse: Setting<T>['parse'],
): Setting<T> => ({
  about,
  accepts,
  fallback,
  parse,
})

const oneOf =
  <const T extends string>(...choices: readonly T[]) =>
  (text: string): T | undefined =>
    choices.find((choice) => choice === text)

const onOrOff = (text: string) => (text === 'on' ? true : text === 'off' ? false : undefined)

const integer = (least: number, most: number) => (text: string) => {
  const value = /^\d{1,9}$/.test(text) ? Number(text) : Number.NaN
  return value >= least && value <= most ? value : undefined
}

const duration = (text: string) => parseDuration(text) ?? undefined
/** Node's timers take 31 bits of milliseconds; a longer one would end at once. */
const longestTimer = 20 * 86_400_000
const timer = (text: string) => {
  const value = parseDuration(text)
  return value !== null && value <= longestTimer ? value : undefined
}
const aTimer = 'a duration up to 20d, such as 500ms, 30s or 15m'
const aRate = 'a number of requests in a time, such as 600/1m, or off'
const aDuration = 'a duration such as 30s, 15m, 12h or 30d'

function httpUrl(text: string): URL | undefined {
  const url = URL.canParse(text) ? new URL(text) : undefined
  const plain = url && !url.username && !url.password && !url.search && !url.hash
  return plain && /^https?:$/.test(url.protocol) ? url : undefined
}

function baseUrl(text: string): string | null | undefined {
  if (text === '') return null
  return httpUrl(text)?.href.replace(/\/+$/, '')
}

function origins(text: string): readonly string[] | undefined {
  const names = text.split(',').map((name) => name.trim())
  const given = names.filter((name) => name !== '')
  return given.every((name) => name === '*' || httpUrl(name)?.origin === name) ? given : undefined
}

/** The one list of settings: what the server reads, and what the docs are checked against. */
export const settings = {
  MEDIABUCKET_HOST: setting(
    '127.0.0.1',
    'an address or host name',
    'Address to listen on; `0.0.0.0` or `::` for every interface.',
    (text) => (/^[\w.:%-]+$/.test(text) ? text : undefined),
  ),
  MEDIABUCKET_PORT: setting(
    '8080',
    'a port from 0 to 65535',
    'Port to listen on; 0 takes a free one.',
    integer(0, 65_535),
  ),
  MEDIABUCKET_BASE_URL: setting(
    '',
    'an absolute http or https URL without query or credentials, such as https://media.example.org',
    'What every URL in an answer begins with. Without it, it follows host and port.',
    baseUrl,
  ),
  MEDIABUCKET_MEDIA_BASE_URL: setting(
    '',
    'an absolute http or https URL on another host than MEDIABUCKET_BASE_URL, such as https://media-usercontent.example.org',
    'What the URLs of bytes begin with, so that browsers keep uploads apart from the gallery and the API. Without it, they begin with the base URL.',
    baseUrl,
  ),
  MEDIABUCKET_DATA: setting(
    './data',
    'a directory',
    'Where the catalog and the bytes are kept.',
    (text) => text,
  ),
  MEDIABUCKET_ENVELOPE: setting(
    'bare',
    'bare or wrapped',
    'Whether a page stands alone or inside `{"data": …}`.',
    oneOf('bare', 'wrapped'),
  ),
  MEDIABUCKET_EXTENSIONS: setting(
    'on',
    'on or off',
    'Whether media URLs carry the extension of their type.',
    onOrOff,
  ),
  MEDIABUCKET_LINKS: setting(
    'all',
    'all or window',
    'Whether a page links every page, or a window around the current one.',
    oneOf('all', 'window'),
  ),
  MEDIABUCKET_GALLERY: setting(
    'on',
    'on or off',
    'Whether `/` answers the gallery, a page where people see, add and delete files with a token.',
    onOrOff,
  ),
  MEDIABUCKET_PAGE_CACHE: setting(
    '32MB',
    'a size such as 32MB, or 0',
    'Memory for the bytes of pages that were listed before; 0 makes every page anew.',
    (text) => parseSize(text) ?? undefined,
  ),
  MEDIABUCKET_LINK_RIBBON: setting(
    '64MB',
    'a size such as 64MB, or 0',
    'Memory for the links that all pages share, about 80 bytes for each page of the largest bucket; links beyond it are made for each answer.',
    (text) => parseSize(text) ?? undefined,
  ),
  MEDIABUCKET_MAX_FILE_SIZE: setting(
    '5GB',
    'a size such as 500MB, 5GB or 2GiB',
    'The largest file that is stored.',
    (text) => parseSize(text) || undefined,
  ),
  MEDIABUCKET_MAX_PARTS: setting(
    '1000',
    'a number from 1 to 100000',
    'The most parts, files and fields together, that one form may have.',
    integer(1, 100_000),
  ),
  MEDIABUCKET_UPLOAD_EXPIRY: setting(
    '24h',
    aDuration,
    'How long an upload in pieces is kept since its last byte, finished or not.',
    duration,
  ),
  MEDIABUCKET_MIN_FREE: setting(
    'auto',
    'auto, a size such as 1GB, or 0',
    'Free space that uploads leave on the disk of the data, so that deletes and the service itself go on; `auto` is 64MB, or a tenth of a smaller file system.',
    (text) => (text === 'auto' ? null : (parseSize(text) ?? undefined)),
  ),
  MEDIABUCKET_CORS_ORIGINS: setting(
    '',
    'origins such as https://app.example.org, separated by commas, or *',
    'Web origins whose pages may call the service. None unless set.',
    origins,
  ),
  MEDIABUCKET_TRUSTED_PROXIES: setting(
    '',
    'addresses, ranges such as 10.0.0.0/8, loopback, linklocal and uniquelocal, separated by commas',
    'Reverse proxies whose `X-Forwarded-For` gives the address of the client, for limits. None unless set.',
    (text) => parseAddressRanges(text) ?? undefined,
  ),
  MEDIABUCKET_TOKEN_RATE: setting(
    '60000/1m',
    aRate,
    'How many requests one token may send; further ones are answered 429.',
    parseRequestRate,
  ),
  MEDIABUCKET_ADDRESS_RATE: setting(
    '120000/1m',
    aRate,
    'How many requests one address may send, with tokens or without; further ones are answered 429.',
    parseRequestRate,
  ),
  MEDIABUCKET_AUTH_FAILURE_RATE: setting(
    '100/1m',
    aRate,
    'How many requests with tokens that are not valid one address may send; further ones are answered 429, those with valid tokens are not.',
    parseRequestRate,
  ),
  MEDIABUCKET_MEDIA_MAX_AGE: setting(
    '1d',
    aDuration,
    'How long caches may keep the bytes of an item; a deleted item may live on in them for that long.',
    duration,
  ),
  MEDIABUCKET_VARIANT_PROCESSES: setting(
    '2',
    'a number from 1 to 64',
    'How many variants of pictures are made at once, each by a process of its own that runs only while there is work.',
    integer(1, 64),
  ),
  MEDIABUCKET_VARIANT_QUEUE: setting(
    '500',
    'a number from 0 to 100000',
    'How many variants may wait to be made; further requests for new ones are answered 503.',
    integer(0, 100_000),
  ),
  MEDIABUCKET_VARIANT_TIMEOUT: setting(
    '20s',
    aTimer,
    'How long the making of one variant may take; what takes longer has none.',
    (text) => timer(text) || undefined,
  ),
  MEDIABUCKET_VARIANT_MEMORY: setting(
    '600MB',
    'a size such as 600MB or 2GB',
    'The most memory that each of these processes may take, about 80 MB of it for itself; what needs more has no variant.',
    (text) => parseSize(text) || undefined,
  ),
  MEDIABUCKET_VARIANT_MEGAPIXELS: setting(
    '200',
    'a number from 1 to 10000',
    'Pictures with more million pixels than this have no variant.',
    integer(1, 10_000),
  ),
  MEDIABUCKET_MAX_CONNECTIONS: setting(
    '5000',
    'a number from 0 to 1000000',
    'The most connections that are open at once; 0 for no limit.',
    integer(0, 1_000_000),
  ),
  MEDIABUCKET_MAX_CONNECTIONS_PER_ADDRESS: setting(
    '1000',
    'a number from 0 to 1000000',
    'The most connections that one address, or one IPv6 network of 64 bits, has open at once; 0 for no limit. `MEDIABUCKET_TRUSTED_PROXIES` are exempt.',
    integer(0, 1_000_000),
  ),
  MEDIABUCKET_HEADER_TIMEOUT: setting(
    '15s',
    aTimer,
    'How long a client may take to send the headers of a request.',
    timer,
  ),
  MEDIABUCKET_IDLE_TIMEOUT: setting(
    '60s',
    aTimer,
    'How long a connection may stay silent, within a request or between two.',
    timer,
  ),
  MEDIABUCKET_MIN_SEND_RATE: setting(
    '2KB',
    'a size such as 2KB or 64KB, or 0',
    'Connections whose clients read fewer bytes of an answer per second, measured over the idle timeout, are closed; 0 for no limit.',
    (text) => parseSize(text) ?? undefined,
  ),
  MEDIABUCKET_SHUTDOWN_TIMEOUT: setting(
    '10s',
    aTimer,
    'How long requests under way may take to finish when the service is told to stop.',
    timer,
  ),
  MEDIABUCKET_LOG_LEVEL: setting(
    'info',
    'trace, debug, info, warn, error, fatal or silent',
    'The least level that is logged.',
    oneOf('trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'),
  ),
  MEDIABUCKET_LOG_FORMAT: setting(
    'auto',
    'auto, json or text',
    'One line of JSON for each event, or a line for people; `auto` is text on a terminal and JSON elsewhere.',
    oneOf('auto', 'json', 'text'),
  ),
}

/** Names that start like ours and belong to the client and the command line. */
const foreign = new Set(['MEDIABUCKET_URL', 'MEDIABUCKET_TOKEN'])

/** All faults of the settings at once (docs/interface.md O7). */
export class ConfigError extends Error {
  override readonly name = 'ConfigError'
  readonly faults: readonly string[]

  constructor(faults: readonly string[]) {
    const [first = ''] = faults
    super(faults.length === 1 ? first : `${faults.length} settings are wrong:\n  ${faults.join('\n  ')}`)
    this.faults = faults
  }
}

/** Reads the environment. Throws ConfigError; warnings are worth a line of the log. */
export function readConfig(env: Readonly<Record<string, string | undefined>> = process.env): {
  config: Config
  warnings: string[]
} {
  const faults: string[] = []

  /** An empty variable counts as unset: that is how compose files write "none". */
  function read<T>(name: keyof typeof settings, from: Setting<T>): T {
    const text = env[name]?.trim() || from.fallback
    const value = from.parse(text)
    if (value !== undefined) return value
    faults.push(`${name} is ${JSON.stringify(text)}; it must be ${from.accepts}.`)
    return read(name, { ...from, parse: () => from.parse(from.fallback) })
  }

  const config: Config = {
    host: read('MEDIABUCKET_HOST', settings.MEDIABUCKET_HOST),
    port: read('MEDIABUCKET_PORT', settings.MEDIABUCKET_PORT),
    baseUrl: read('MEDIABUCKET_BASE_URL', settings.MEDIABUCKET_BASE_URL),
    mediaBaseUrl: read('MEDIABUCKET_MEDIA_BASE_URL', settings.MEDIABUCKET_MEDIA_BASE_URL),
    data: read('MEDIABUCKET_DATA', settings.MEDIABUCKET_DATA),
    envelope: read('MEDIABUCKET_ENVELOPE', settings.MEDIABUCKET_ENVELOPE),
    extensions: read('MEDIABUCKET_EXTENSIONS', settings.MEDIABUCKET_EXTENSIONS),
    links: read('MEDIABUCKET_LINKS', settings.MEDIABUCKET_LINKS),
    gallery: read('MEDIABUCKET_GALLERY', settings.MEDIABUCKET_GALLERY),
    pageCache: read('MEDIABUCKET_PAGE_CACHE', settings.MEDIABUCKET_PAGE_CACHE),
    pageLinkCache: read('MEDIABUCKET_LINK_RIBBON', settings.MEDIABUCKET_LINK_RIBBON),
    maxFileSize: read('MEDIABUCKET_MAX_FILE_SIZE', settings.MEDIABUCKET_MAX_FILE_SIZE),
    maxParts: read('MEDIABUCKET_MAX_PARTS', settings.MEDIABUCKET_MAX_PARTS),
    uploadExpiry: read('MEDIABUCKET_UPLOAD_EXPIRY', settings.MEDIABUCKET_UPLOAD_EXPIRY),
    minFree: read('MEDIABUCKET_MIN_FREE', settings.MEDIABUCKET_MIN_FREE),
    corsOrigins: read('MEDIABUCKET_CORS_ORIGINS', settings.MEDIABUCKET_CORS_ORIGINS),
    trustedProxies: read('MEDIABUCKET_TRUSTED_PROXIES', settings.MEDIABUCKET_TRUSTED_PROXIES),
    tokenRate: read('MEDIABUCKET_TOKEN_RATE', settings.MEDIABUCKET_TOKEN_RATE),
    addressRate: read('MEDIABUCKET_ADDRESS_RATE', settings.MEDIABUCKET_ADDRESS_RATE),
    authFailureRate: read('MEDIABUCKET_AUTH_FAILURE_RATE', settings.MEDIABUCKET_AUTH_FAILURE_RATE),
    mediaMaxAge: read('MEDIABUCKET_MEDIA_MAX_AGE', settings.MEDIABUCKET_MEDIA_MAX_AGE),
    variantProcesses: read('MEDIABUCKET_VARIANT_PROCESSES', settings.MEDIABUCKET_VARIANT_PROCESSES),
    variantQueue: read('MEDIABUCKET_VARIANT_QUEUE', settings.MEDIABUCKET_VARIANT_QUEUE),
    variantTimeout: read('MEDIABUCKET_VARIANT_TIMEOUT', settings.MEDIABUCKET_VARIANT_TIMEOUT),
    variantMemory: read('MEDIABUCKET_VARIANT_MEMORY', settings.MEDIABUCKET_VARIANT_MEMORY),
    variantMegapixels: read('MEDIABUCKET_VARIANT_MEGAPIXELS', settings.MEDIABUCKET_VARIANT_MEGAPIXELS),
    maxConnections: read('MEDIABUCKET_MAX_CONNECTIONS', settings.MEDIABUCKET_MAX_CONNECTIONS),
    maxConnectionsPerAddress: read(
      'MEDIABUCKET_MAX_CONNECTIONS_PER_ADDRESS',
      settings.MEDIABUCKET_MAX_CONNECTIONS_PER_ADDRESS,
    ),
    headerTimeout: read('MEDIABUCKET_HEADER_TIMEOUT', settings.MEDIABUCKET_HEADER_TIMEOUT),
    idleTimeout: read('MEDIABUCKET_IDLE_TIMEOUT', settings.MEDIABUCKET_IDLE_TIMEOUT),
    minSendRate: read('MEDIABUCKET_MIN_SEND_RATE', settings.MEDIABUCKET_MIN_SEND_RATE),
    shutdownTimeout: read('MEDIABUCKET_SHUTDOWN_TIMEOUT', settings.MEDIABUCKET_SHUTDOWN_TIMEOUT),
    logLevel: read('MEDIABUCKET_LOG_LEVEL', settings.MEDIABUCKET_LOG_LEVEL),
    logFormat: read('MEDIABUCKET_LOG_FORMAT', settings.MEDIABUCKET_LOG_FORMAT),
  }
  const base = config.baseUrl ?? defaultBaseUrl(config.host, config.port)
  if (config.mediaBaseUrl !== null && new URL(config.mediaBaseUrl).host === new URL(base).host)
    faults.push(
      `MEDIABUCKET_MEDIA_BASE_URL is "${config.mediaBaseUrl}"; it must be on another host than ${base}, the base URL.`,
    )
  if (faults.length > 0) throw new ConfigError(faults)

  const warnings = Object.keys(env)
    .filter((name) => name.startsWith('MEDIABUCKET_') && !(name in settings) && !foreign.has(name))
    .map((name) => `${name} is not a setting of Mediabucket and is ignored.${suggestion(name)}`)
  if (config.baseUrl === null && !isLoopback(config.host)) {
    warnings.push(
      `The service listens on ${config.host}, and its answers will hold URLs that begin with ${defaultBaseUrl(config.host, config.port)}. ` +
        'Set MEDIABUCKET_BASE_URL to the address that clients use.',
    )
  }
  return { config: Object.freeze(config), warnings }
}

/** The setting that a mistyped name is probably meant to be. */
function suggestion(name: string): string {
  const short = (full: string) => full.replace('MEDIABUCKET_', '')
  const nearest = nearestName(short(name), Object.keys(settings).map(short))
  return nearest === null ? '' : ` Did you mean MEDIABUCKET_${nearest}?`
}

const isLoopback = (host: string) =>
  host === 'localhost' || host === '::1' || /^127\.\d+\.\d+\.\d+$/.test(host)

/** Where a service on this host and port can be reached from its own machine. */
export function defaultBaseUrl(host: string, port: number): string {
  const reachable = host === '0.0.0.0' || host === '::' ? '127.0.0.1' : host
  return `http://${reachable.includes(':') ? `[${reachable}]` : reachable}:${port}`
}
