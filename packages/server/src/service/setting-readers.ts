import { availableParallelism } from 'node:os'
import {
  type BucketPattern,
  type BucketSettings,
  parseBucketOptions,
  parseBucketPattern,
} from '../core/bucket-settings.ts'
import { parseAddressRanges } from '../core/ip-address.ts'
import { isIssuerUrl, issuerUrlRule } from '../core/issuer.ts'
import { parseSize } from '../core/quotas.ts'
import {
  parseS3Location,
  parseSendFile,
  type S3Location,
  type SendFile,
  splitDatabaseUrl,
} from '../core/storage-urls.ts'
import { parseDuration, parseRequestRate, type RequestRate } from '../core/times.ts'
import { type Scope, scopes } from '../core/token-rules.ts'
import { parseVariantSizes, sizesRule, type VariantSize } from '../core/variant-sizes.ts'

/** Reads the text of one setting. */
export interface Reader<T> {
  /** Completes the message "it must be …" and the column "Accepts" of docs/settings.md. */
  readonly accepts: string
  /** Undefined when the text is not accepted. */
  readonly read: (text: string) => T | undefined
}

export const hostName: Reader<string> = {
  accepts: 'an address or host name',
  read: (text) => (/^[\w.:%-]+$/.test(text) ? text : undefined),
}

export const directory: Reader<string> = { accepts: 'a directory', read: (text) => text }

/** A whole number of at most nine digits; `what` names it in the message. */
export const wholeNumber = (least: number, most: number, what = 'a number'): Reader<number> => ({
  accepts: `${what} from ${least} to ${most}`,
  read(text) {
    const value = /^\d{1,9}$/.test(text) ? Number(text) : Number.NaN
    return value >= least && value <= most ? value : undefined
  },
})

/** Null for `off`. */
export const portOrOff: Reader<number | null> = {
  accepts: 'a port from 0 to 65535, or off',
  read: (text) => (text === 'off' ? null : wholeNumber(0, 65_535).read(text)),
}

/** Null for none. */
export const hostOrNone: Reader<string | null> = {
  accepts: 'a host name without a port',
  read: (text) =>
    text === '' ? null : /^[a-z\d-]+(?:\.[a-z\d-]+)*$/i.test(text) ? text.toLowerCase() : undefined,
}

export const regionName: Reader<string> = {
  accepts: 'a name of 1 to 64 letters, digits, hyphens and underscores, such as eu-central-1',
  read: (text) => (/^[\w-]{1,64}$/.test(text) ? text : undefined),
}

/** `auto` is one for each core that this process may use. */
export const processes = (most: number): Reader<number> => ({
  accepts: `a number from 1 to ${most}, or auto`,
  read: (text) =>
    text === 'auto' ? Math.min(availableParallelism(), most) : wholeNumber(1, most).read(text),
})

export const oneOf = <const T extends string>(...choices: readonly T[]): Reader<T> => ({
  accepts: [choices.slice(0, -1).join(', '), ...choices.slice(-1)].join(' or '),
  read: (text) => choices.find((choice) => choice === text),
})

export const onOrOff: Reader<boolean> = {
  accepts: 'on or off',
  read: (text) => (text === 'on' ? true : text === 'off' ? false : undefined),
}

/** Milliseconds. */
export const duration: Reader<number> = {
  accepts: 'a duration such as 30s, 15m, 12h or 30d',
  read: (text) => parseDuration(text) ?? undefined,
}

/** Ten years. */
const longestLink = 3650 * 86_400_000

/** Milliseconds. */
export const linkLifetime: Reader<number> = {
  accepts: 'a duration from 1s to 3650d, such as 12h or 30d',
  read(text) {
    const value = parseDuration(text)
    return value !== null && value >= 1000 && value <= longestLink ? value : undefined
  },
}

/** Node's timers count to 2^31 − 1 milliseconds and fire at once for more. */
const longestTimer = 20 * 86_400_000

/** Milliseconds, as many as a timer can wait. */
export const timerDuration: Reader<number> = {
  accepts: 'a duration up to 20d, such as 500ms, 30s or 15m',
  read(text) {
    const value = parseDuration(text)
    return value !== null && value <= longestTimer ? value : undefined
  },
}

/** Milliseconds; 0 for `off`. */
export const timerDurationOrOff: Reader<number> = {
  accepts: 'off, or a duration up to 20d, such as 500ms, 30s or 15m',
  read: (text) => (text === 'off' ? 0 : timerDuration.read(text)),
}

/** Bytes, at least 1. */
export const size = (examples: string): Reader<number> => ({
  accepts: `a size such as ${examples}`,
  read: (text) => parseSize(text) || undefined,
})

/** Bytes. */
export const sizeOrZero = (examples: string): Reader<number> => ({
  accepts: `a size such as ${examples}, or 0`,
  read: (text) => parseSize(text) ?? undefined,
})

/** Bytes, at most `limit`. */
export const sizeUpTo = (limit: number, examples: string): Reader<number> => ({
  accepts: `a size such as ${examples}, or 0`,
  read(text) {
    const bytes = parseSize(text)
    return bytes === null || bytes > limit ? undefined : bytes
  },
})

/** Bytes; null for `auto`. */
export const sizeOrAuto: Reader<number | null> = {
  accepts: 'auto, a size such as 1GB, or 0',
  read: (text) => (text === 'auto' ? null : (parseSize(text) ?? undefined)),
}

/** Null for `off` and `0`. */
export const rate: Reader<RequestRate | null> = {
  accepts: 'a number of requests per duration, such as 600/1m, or off',
  read: parseRequestRate,
}

/** Without a slash at the end; null for the empty text. */
export const baseUrl = (what: string, example: string): Reader<string | null> => ({
  accepts: `an absolute http or https URL ${what}, such as ${example}`,
  read: (text) => (text === '' ? null : httpUrl(text)?.href.replace(/\/+$/, '')),
})

export const webOrigins: Reader<readonly string[]> = {
  accepts: 'origins such as https://app.example.org, separated by commas, or *',
  read(text) {
    const origins = text
      .split(',')
      .map((origin) => origin.trim())
      .filter((origin) => origin !== '')
    return origins.every((origin) => origin === '*' || httpUrl(origin)?.origin === origin)
      ? origins
      : undefined
  },
}

export const addressRanges: Reader<readonly string[]> = {
  accepts: 'addresses, ranges such as 10.0.0.0/8, loopback, linklocal and uniquelocal, separated by commas',
  read: (text) => parseAddressRanges(text) ?? undefined,
}

/** Where a scanner of uploads is. */
type ScannerAddress =
  | {
      readonly type: 'clamd'
      readonly at: { readonly host: string; readonly port: number } | { readonly path: string }
    }
  | { readonly type: 'http'; readonly url: URL }

/** Null for `off`. */
export const scannerAddress: Reader<ScannerAddress | null> = {
  accepts:
    'off, clamd:host:port, clamd:/path/to/socket, or the URL of a scanner such as http://127.0.0.1:9000/scan',
  read(text) {
    if (text === 'off') return null
    const [, path] = /^clamd:(\/.+)$/.exec(text) ?? []
    if (path !== undefined) return { type: 'clamd', at: { path } }
    const [, host, port] = /^clamd:(\[[\da-f:.]+\]|[\w.-]+):(\d{1,5})$/i.exec(text) ?? []
    if (host !== undefined && Number(port) >= 1 && Number(port) <= 65_535)
      return { type: 'clamd', at: { host: host.replace(/^\[|\]$/g, ''), port: Number(port) } }
    const url = URL.canParse(text) ? new URL(text) : null
    return url !== null && /^https?:$/.test(url.protocol) && !url.username && !url.password && !url.hash
      ? { type: 'http', url }
      : undefined
  },
}

/** Addresses that the service may call for users; null for `off`. */
export const callableAddresses: Reader<CallableAddresses | null> = {
  accepts: `off, or public and ${addressRanges.accepts}`,
  read(text) {
    if (text === 'off') return null
    const names = text.split(',').map((name) => name.trim())
    const allowed = parseAddressRanges(names.filter((name) => name !== 'public').join(','))
    return allowed === null ? undefined : { isPublicAllowed: names.includes('public'), allowed }
  },
}

interface CallableAddresses {
  readonly isPublicAllowed: boolean
  /** Ranges of other addresses. */
  readonly allowed: readonly string[]
}

function httpUrl(text: string): URL | undefined {
  const url = URL.canParse(text) ? new URL(text) : undefined
  const isPlain = url && !url.username && !url.password && !url.search && !url.hash
  return isPlain && /^https?:$/.test(url.protocol) ? url : undefined
}

export const sendFile: Reader<SendFile | null> = {
  accepts:
    'off, redirect, x-sendfile, or x-accel-redirect: and a path such as x-accel-redirect:/mediabucket-files',
  read: parseSendFile,
}

/** Null for the empty text. */
export const databaseUrl: Reader<string | null> = {
  accepts: 'a URL such as postgres://user:password@host:5432/database?sslmode=verify-full',
  read(text) {
    if (text === '') return null
    return splitDatabaseUrl(text) === null ? undefined : text
  },
}

export const blobsUrl: Reader<S3Location | null> = {
  accepts:
    's3://bucket/prefix, optionally with endpoint=URL, region=NAME and path_style=true or false as parameters',
  read: (text) => (text === '' ? null : parseS3Location(text)),
}

export const variantSizes: Reader<readonly VariantSize[]> = {
  accepts: `${sizesRule}; separated by commas`,
  read: parseVariantSizes,
}

/** Null for the empty text. Compared with `iss` as it is, so a slash at the end stays. */
export const issuerUrl: Reader<string | null> = {
  accepts: issuerUrlRule,
  read: (text) => (text === '' ? null : isIssuerUrl(text) ? text : undefined),
}

/** Null for the empty text. */
export const textOrNone = (accepts: string): Reader<string | null> => ({
  accepts,
  read: (text) => (text === '' ? null : /\p{Cc}/u.test(text) ? undefined : text),
})

/** The scopes that a JWT can have (docs/interface.md J3). */
const jwtScopes = scopes.filter((scope) => !scope.endsWith(':manage'))

export const jwtScopeNames: Reader<readonly Scope[]> = {
  accepts: `some of ${jwtScopes.join(', ')}, separated by spaces or commas`,
  read: (text) => (text === '' ? [] : chooseFrom(jwtScopes, text)),
}

function chooseFrom<T extends string>(choices: readonly T[], text: string): readonly T[] | undefined {
  const names = text.split(/[\s,]+/)
  const chosen = choices.filter((choice) => names.includes(choice))
  return chosen.length === new Set(names).size ? chosen : undefined
}

/** Parameters in the form of a query. */
export const queryParameters: Reader<Readonly<Record<string, string>>> = {
  accepts:
    'parameters such as resource=https://media.example.org&prompt=login, with values encoded as in URLs',
  read(text) {
    const parameters = new URLSearchParams(text)
    const isValid = [...parameters].every(([name, value]) => name !== '' && value !== '')
    return isValid ? Object.fromEntries(parameters) : undefined
  },
}

/** A name, or a JSON Pointer. */
export const claimName: Reader<string> = {
  accepts: 'the name of a claim such as scope, or a JSON Pointer such as /resource_access/media/roles',
  read: (text) => (/^[^\s{}]+$/.test(text) ? text : undefined),
}

export const bucketPattern: Reader<BucketPattern> = {
  accepts:
    'a name with one claim in braces such as user-{sub}, with at most 20 other characters, and with a prefix if the claim is sub',
  read: (text) => parseBucketPattern(text) ?? undefined,
}

export const bucketOptionList: Reader<Partial<BucketSettings>> = {
  accepts: 'options of `mediabucket bucket create` such as max-bytes=1GB, private=on, separated by commas',
  read: parseBucketOptions,
}
