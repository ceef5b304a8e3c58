import { ExplainedError } from './explained-error.ts'

/** The reason why an operation was refused or failed. http/problems/ maps each code to a status and a text. */
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
  | 'bucket-unknown'
  | 'scope-missing'
  | 'signature-invalid'
  | 'link-expired'
  | 'destination-refused'
  | 'route-unknown'
  | 'media-unknown'
  | 'managed-token-unknown'
  | 'managed-token-inactive'
  | 'method-not-allowed'
  | 'request-timeout'
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
  | 'bytes-missing'
  | 'storage-full'
  | 'quota-exceeded'
  | 'idempotency-key-malformed'
  | 'idempotency-key-reused'
  | 'upload-unknown'
  | 'upload-malformed'
  | 'upload-version-unsupported'
  | 'upload-type-unsupported'
  | 'upload-offset-conflict'
  | 'checksum-malformed'
  | 'checksum-mismatch'
  | 'catalog-busy'
  | 'overloaded'
  | 'storage-unavailable'
  | 'issuer-unavailable'
  | 'shutting-down'
  | 'not-ready'
  | 'internal'

/** One faulty parameter: its name and the values that it accepts. */
export interface ParameterFault {
  readonly parameter: string
  readonly detail: string
}

/** An expected failure. `detail` is shown to the caller: no path, no token, no stack in it. */
export class Fault extends ExplainedError {
  override readonly name = 'Fault'
  readonly code: FaultCode
  readonly parameters: readonly ParameterFault[]

  constructor(
    code: FaultCode,
    detail: string,
    options: { parameters?: readonly ParameterFault[]; cause?: unknown } = {},
  ) {
    super(detail, { cause: options.cause })
    this.code = code
    this.parameters = options.parameters ?? []
  }
}

export const tokenRevoked = (): Fault => new Fault('token-revoked', 'This token has been revoked.')

/** For requests in progress while their bucket, and with it their token, is deleted. */
export const bucketDeleted = (): Fault =>
  new Fault('token-revoked', 'The bucket of this token has been deleted.')
