import { hash } from 'node:crypto'
import { crc32 } from 'node:zlib'
import { maxTokenName } from '@mediabucket/client/rules'
import { Fault, tokenExpired } from './faults.ts'
import { base32Alphabet, base32Letters, base32Of, randomBase32 } from './ids.ts'

const prefix = 'mbkt_'
/** Of the service tokens (docs/interface.md ST1), so that the text of a token says how it is looked up. */
const servicePrefix = 'mbks_'
const secretLength = 32
const checksumLength = 6
const shape = new RegExp(
  `^(?:${prefix}|${servicePrefix})[${base32Alphabet}]{${secretLength + checksumLength}}$`,
)

/** A token of 160 random bits (docs/interface.md A8). Shown once; only its hash is stored. */
export const newToken = (): string => withChecksum(prefix + randomBase32(secretLength))

/** As newToken, of the service (docs/interface.md ST1). */
export const newServiceToken = (): string => withChecksum(servicePrefix + randomBase32(secretLength))

const withChecksum = (unsigned: string): string => unsigned + checksum(unsigned)

/** Whether the text has the prefix of the service tokens. */
export const isServiceToken = (text: string): boolean => text.startsWith(servicePrefix)

/** As newToken, of 32 bytes that nobody can know. */
export const tokenOfSecret = (secret: Uint8Array): string =>
  withChecksum(prefix + base32Letters(secret.subarray(0, secretLength)))

/** Whether the format and the checksum are correct: distinguishes a mistyped token from an unknown one. */
export function isWellFormedToken(text: string): boolean {
  return shape.test(text) && checksum(text.slice(0, -checksumLength)) === text.slice(-checksumLength)
}

/** SHA-256, 32 bytes. 160 random bits need no salt and no slow hash. Node.js returns the hash faster as text. */
export const hashToken = (token: string): Uint8Array => Buffer.from(hash('sha256', token, 'binary'), 'binary')

/** The low 30 bits of the CRC-32, which detect any one changed character. */
const checksum = (text: string): string => base32Of(crc32(text), checksumLength)

/** What a name of a token must be, for messages. */
export const tokenNameRule = `A name has at most ${maxTokenName} characters, and no control characters.`

export const isTokenName = (name: string): boolean =>
  name.length <= maxTokenName && name.isWellFormed() && !/\p{Cc}/u.test(name)

/** The permissions in a bucket (docs/interface.md A3). */
export const scopes = [
  'media:read',
  'media:write',
  'media:delete',
  'tokens:manage',
  'webhooks:manage',
] as const
export type Scope = (typeof scopes)[number]

/** The scopes of a token that is issued without a list of scopes. */
export const defaultScopes: readonly Scope[] = ['media:read', 'media:write', 'media:delete']

export const isScope = (name: string): name is Scope => (scopes as readonly string[]).includes(name)

/** The permissions of a service token (docs/interface.md ST1). Those of buckets are for every bucket. */
export const serviceScopes = ['buckets:manage', ...scopes] as const
export type ServiceScope = (typeof serviceScopes)[number]

export const isServiceScope = (name: string): name is ServiceScope =>
  (serviceScopes as readonly string[]).includes(name)

/** Throws Fault `scope-missing`, which names the scope, unless the token has it (docs/interface.md A3). */
export function requireScope<Name extends ServiceScope>(
  grant: { readonly scopes: ReadonlySet<Name> },
  scope: Name,
): void {
  if (grant.scopes.has(scope)) return
  throw scopesMissing(`This operation needs a token with the scope ${scope}.`, [scope])
}

/** For this time after its expiry, a token finishes the uploads that it has created (docs/interface.md R14). Milliseconds. */
export const graceOfUploads = 3_600_000

/** Throws Fault `token-expired` for a token that is accepted only for its uploads (docs/interface.md R14). */
export function requireUnexpired({
  expiresAt,
  isExpired = false,
}: {
  readonly expiresAt: number | null
  readonly isExpired?: boolean
}): void {
  if (isExpired && expiresAt !== null) throw tokenExpired(expiresAt)
}

/** Throws Fault `scope-missing` for a token with limits: its `media:write` permits uploads only (docs/interface.md T9). */
export function requireUnlimited(grant: { readonly limits: object | null }): void {
  if (grant.limits === null) return
  throw scopesMissing('The scope media:write of a token with limits permits uploads only.', ['media:write'])
}

/** Throws Fault `scope-missing` unless the token of the request has all scopes of the new token (docs/interface.md T5). */
export function requireGrantable(
  grant: { readonly scopes: ReadonlySet<ServiceScope> },
  scopes: readonly ServiceScope[],
): void {
  const missing = scopes.filter((scope) => !grant.scopes.has(scope))
  if (missing.length === 0) return
  throw scopesMissing(
    `A token grants only scopes that it has. The token of this request lacks ${missing.join(', ')}.`,
    missing,
  )
}

/** RFC 6750, section 3: the scopes are separated by spaces. */
const scopesMissing = (detail: string, scopes: readonly ServiceScope[]): Fault =>
  new Fault('scope-missing', detail, {
    parameters: [{ parameter: 'scope', detail: scopes.join(' '), missing: scopes }],
  })

/** Who makes a change, for the audit log (docs/interface.md Y2). */
export interface Actor {
  /** A client with a token, an operator with the command line, or the service itself. */
  readonly kind: 'client' | 'operator' | 'service'
  readonly tokenId: string | null
  /** The user of an external issuer, or the user of the operating system who runs the command. */
  readonly subject: string | null
  /** The IP address of a client. */
  readonly address: string | null
  readonly requestId: string | null
}

/** The service itself, for example when it removes what has expired. */
export const service: Actor = {
  kind: 'service',
  tokenId: null,
  subject: null,
  address: null,
  requestId: null,
}

export const operator = (user: string): Actor => ({ ...service, kind: 'operator', subject: user })

/** Seconds for which a replaced token remains valid: by default, and at most (docs/interface.md T8). */
export const defaultOverlap = 86_400
export const maxOverlap = 2_592_000

/** A letter or digit in a URL: the character, or its percent-encoding, encoded any number of times. */
const letterOrDigit = '(?:[0-9a-z]|%(?:25)*(?:3[0-9]|[46][1-9a-f]|[57][0-9a]))'

/** A letter in upper or lower case, or its percent-encoding. */
const patternOf = (letter: string) => {
  const codes = new Set([letter, letter.toUpperCase()].map((one) => one.charCodeAt(0).toString(16)))
  return `(?:${letter}|%(?:25)*(?:${[...codes].join('|')}))`
}

const prefixed = new RegExp(
  `(?:${[prefix, servicePrefix].map((one) => [...one].map(patternOf).join('')).join('|')})${letterOrDigit}*`,
  'gi',
)

/** The length of a token after its prefix. No id, code or asset name of the service has as many letters and digits in a row. */
const unprefixedLength = secretLength + checksumLength

const longRun = new RegExp(`${letterOrDigit}{${unprefixedLength},}`, 'gi')

const longSecret = new RegExp(`[${base32Alphabet}]{${unprefixedLength},}`, 'g')

/** A run of this length may be a mistyped token; a longer one may contain a token. */
function mayHaveToken(run: string): boolean {
  const text = decode(run).toLowerCase()
  return (text.length === unprefixedLength ? [text] : (text.match(longSecret) ?? [])).some(isVaried)
}

/** Random texts of the lengths of a token and of a signature have at least this many different characters, but for one in 10^13. */
const leastVariety = 10

const isVaried = (text: string): boolean => new Set(text).size >= leastVariety

const encoded = /%(?:25)*([0-9a-f]{2})/gi

const decode = (text: string): string =>
  text.replace(encoded, (_, code: string) => String.fromCharCode(Number.parseInt(code, 16)))

/** A run of the characters of JWTs, or of their percent-encodings: letters, digits, hyphens, underscores and dots. */
const dottedRun = /(?:[\w.-]|%(?:25)*(?:2[de]|3[0-9]|[46][1-9a-f]|[57][0-9a]|5f))+/gi

const dot = /\.|%(?:25)*2e/i

/** The header, the claims and the signature of a JWT each have at least this many characters. */
const minJwtPart = 16

/** Whether three long parts follow each other, as in a JWT. */
function hasJwt(run: string): boolean {
  const isLong = run.split(dot).map((part) => part.length >= minJwtPart)
  return isLong.some((long, index) => long && isLong[index + 1] === true && isLong[index + 2] === true)
}

/** A signature has 43 characters in base64url, of which random ones are in upper and in lower case. */
const minSignature = 40

const hasSignature = (run: string): boolean =>
  run.length >= minSignature &&
  decode(run)
    .split('.')
    .some((part) => part.length >= minSignature && /[a-z]/.test(part) && /[A-Z]/.test(part) && isVaried(part))

/**
 * Replaces every token by `mbkt_…` or `mbks_…`, every JWT by `jwt_…` and every signature of a URL by `signature_…`, also percent-encoded ones.
 * Replaces runs of letters and digits too that may be tokens without their prefix.
 */
export const redactTokens = (text: string): string =>
  text
    .replace(dottedRun, (run) => (hasJwt(run) ? 'jwt_…' : hasSignature(run) ? 'signature_…' : run))
    .replace(prefixed, (run) => `${decode(run).slice(0, prefix.length).toLowerCase()}…`)
    .replace(longRun, (run) => (mayHaveToken(run) ? 'mbkt_…' : run))
