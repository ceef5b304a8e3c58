/** An expected error, whose message contains the reason and what to do. The command line prints it without a stack. */
export class ExplainedError extends Error {}

/** The reason why an operation was refused or failed. http/problem-kinds.ts maps each code to a status and a text. */
export type FaultCode =
  | 'page-malformed'
  | 'parameter-malformed'
  | 'cursor-malformed'
  | 'request-malformed'
  | 'json-malformed'
  | 'authorization-repeated'
  | 'token-missing'
  | 'token-malformed'
  | 'token-unknown'
  | 'token-expired'
  | 'token-revoked'
  | 'token-refused'
  | 'bucket-missing'
  | 'bucket-required'
  | 'bucket-forbidden'
  | 'bucket-unknown'
  | 'scope-missing'
  | 'signature-invalid'
  | 'link-expired'
  | 'destination-refused'
  | 'origin-refused'
  | 'route-unknown'
  | 'media-unknown'
  | 'managed-token-unknown'
  | 'managed-token-inactive'
  | 'key-unknown'
  | 'webhook-unknown'
  | 'webhook-delivery-unknown'
  | 'webhook-deliveries-too-many'
  | 'webhooks-too-many'
  | 'method-not-allowed'
  | 'request-timeout'
  | 'cursor-expired'
  | 'precondition-failed'
  | 'file-too-large'
  | 'parts-too-many'
  | 'body-too-large'
  | 'content-coding-unsupported'
  | 'content-type-unsupported'
  | 'range-unsatisfiable'
  | 'variant-unknown'
  | 'variant-unavailable'
  | 'variants-busy'
  | 'rate-limited'
  | 'connections-too-many'
  | 'streams-too-many'
  | 'method-unsupported'
  | 'transfer-coding-unsupported'
  | 'http-version-unsupported'
  | 'headers-too-large'
  | 'form-malformed'
  | 'form-without-file'
  | 'upload-incomplete'
  | 'filename-malformed'
  | 'file-unreadable'
  | 'file-refused'
  | 'scanner-unavailable'
  | 'bytes-missing'
  | 'storage-full'
  | 'quota-exceeded'
  | 'token-limit-exceeded'
  | 'type-refused'
  | 'bucket-exists'
  | 'bucket-not-empty'
  | 'idempotency-key-malformed'
  | 'idempotency-key-reused'
  | 'url-uploads-off'
  | 'url-uploads-too-many'
  | 'source-refused'
  | 'source-failed'
  | 'source-timeout'
  | 'digest-mismatch'
  | 'upload-unknown'
  | 'upload-malformed'
  | 'upload-version-unsupported'
  | 'upload-type-unsupported'
  | 'upload-offset-conflict'
  | 'checksum-malformed'
  | 'checksum-mismatch'
  | 'catalog-busy'
  | 'catalog-unavailable'
  | 'overloaded'
  | 'storage-unavailable'
  | 'issuer-unavailable'
  | 'read-only'
  | 'shutting-down'
  | 'not-ready'
  | 'internal'

/** What a fault states in words, for programs (docs/interface.md P6). */
export interface FaultMembers {
  /** All values that are accepted. */
  readonly accepted?: readonly string[]
  /** The limits of a number, or of a size in `unit`. Inclusive. */
  readonly minimum?: number
  readonly maximum?: number
  /** Left out for numbers. */
  readonly unit?:
    | 'bytes'
    | 'characters'
    | 'words'
    | 'seconds'
    | 'days'
    | 'items'
    | 'labels'
    | 'parts'
    | 'entries'
  /** What is left of `maximum`. */
  readonly left?: number
  /** The members that the JSON object may have. */
  readonly members?: readonly string[]
  /** The scopes that the token lacks. */
  readonly missing?: readonly string[]
  /** Why the service is not ready: codes of `/readyz`. */
  readonly reasons?: readonly string[]
  /** The status with which another server has responded. */
  readonly source_status?: number
}

/** One faulty parameter: its name and the values that it accepts. */
export interface ParameterFault extends FaultMembers {
  readonly parameter: string
  readonly detail: string
}

/** An expected failure. `detail` is shown to the caller: no path, no token, no stack in it. */
export class Fault extends ExplainedError {
  override readonly name = 'Fault'
  readonly code: FaultCode
  readonly parameters: readonly ParameterFault[]
  readonly members: FaultMembers

  constructor(
    code: FaultCode,
    detail: string,
    options: { parameters?: readonly ParameterFault[]; members?: FaultMembers; cause?: unknown } = {},
  ) {
    super(detail, { cause: options.cause })
    this.code = code
    this.parameters = options.parameters ?? []
    this.members = options.members ?? {}
  }
}

/** `expiredAt` is milliseconds since 1970. */
export const tokenExpired = (expiredAt: number): Fault =>
  new Fault('token-expired', `This token expired at ${new Date(expiredAt).toISOString()}.`)

export const tokenRevoked = (): Fault => new Fault('token-revoked', 'This token has been revoked.')

/** Refuses a token that is or was valid, or its request: the log names it. */
export class TokenFault extends Fault {
  readonly tokenId: string

  constructor({ code, message }: Fault, tokenId: string) {
    super(code, message)
    this.tokenId = tokenId
  }
}

/** A file has more bytes than `limit`. */
export const fileTooLarge = (limit: number): Fault =>
  new Fault('file-too-large', `The file is larger than the limit of ${limit} bytes.`, {
    members: { maximum: limit, unit: 'bytes' },
  })

/** A chunk has more than the `limit` bytes that its upload expects. */
export const chunkTooLarge = (limit: number): Fault =>
  new Fault('file-too-large', `No more than ${limit} bytes are expected here.`, {
    members: { maximum: limit, unit: 'bytes' },
  })

/** For requests in progress while their bucket is deleted, and with it the tokens of the bucket. */
export const bucketDeleted = (): Fault => new Fault('bucket-unknown', 'The bucket has been deleted.')

/** The same fault for every reason, so that it does not reveal items of other buckets (docs/interface.md M3). */
export const itemUnknown = (options?: ErrorOptions): Fault =>
  new Fault('media-unknown', 'There is no such item.', options)

/** The code of a system error, such as `ENOENT`; null for any other error. */
export function errorCode(error: unknown): string | null {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : null
}

/** Why the disk, the database or the store failed. */
export const storageCauses = [
  'full',
  'io',
  'read-only',
  'corrupt',
  'bytes-missing',
  'permission',
  'open-files',
  'database-unreachable',
  'bytes-unreachable',
] as const

export type StorageCause = (typeof storageCauses)[number]

/** Error codes of the operating system. */
const systemCodes: Readonly<Record<string, StorageCause>> = {
  ENOSPC: 'full',
  EDQUOT: 'full',
  EIO: 'io',
  EROFS: 'read-only',
  EACCES: 'permission',
  EPERM: 'permission',
  EMFILE: 'open-files',
  ENFILE: 'open-files',
}

/** SQLite's primary result codes (https://sqlite.org/rescode.html). */
const sqliteCodes: Readonly<Record<number, StorageCause>> = {
  3: 'permission',
  8: 'read-only',
  10: 'io',
  11: 'corrupt',
  13: 'full',
  14: 'io',
  26: 'corrupt',
}

const faultCauses: Partial<Record<FaultCode, StorageCause>> = {
  'bytes-missing': 'bytes-missing',
  'storage-full': 'full',
  'catalog-unavailable': 'database-unreachable',
  'storage-unavailable': 'bytes-unreachable',
}

/** The storage failure in an error or in its chain of causes; null if there is none. */
export function storageCauseOf(error: unknown): StorageCause | null {
  if (!(error instanceof Error)) return null
  const fault = error instanceof Fault ? faultCauses[error.code] : undefined
  if (fault !== undefined) return fault
  const system = systemCodes[errorCode(error) ?? '']
  const sqlite =
    'errcode' in error && typeof error.errcode === 'number' ? sqliteCodes[error.errcode & 0xff] : undefined
  return system ?? sqlite ?? storageCauseOf(error.cause)
}

const outages: ReadonlySet<FaultCode> = new Set([
  'catalog-busy',
  'catalog-unavailable',
  'storage-full',
  'storage-unavailable',
  'overloaded',
])

/** Whether the catalog or the store as a whole has failed, so that other work would probably fail too. */
export const isOutage = (error: unknown): boolean => error instanceof Fault && outages.has(error.code)

/** Node.js lacks a feature that the service needs. The message names the feature and the versions that have it. */
export class UnsupportedNodeError extends ExplainedError {
  constructor(lack: string) {
    super(
      `Node.js ${process.versions.node} ${lack}. Install Node.js 26 or 24, and start the service with it.`,
    )
  }
}
