import type { Fault, FaultCode } from '../core/faults.ts'
import { ObjectFault, type ObjectFaultCode } from '../objects/object-faults.ts'

/** The codes of errors of the S3 protocol that this service sends, with their statuses and texts. */
const kinds = {
  AccessControlListNotSupported: [400, 'The bucket does not allow ACLs.'],
  AccessDenied: [403, 'Access denied.'],
  AccessForbidden: [403, 'CORS is not enabled for this bucket. The reverse proxy can add its headers.'],
  AuthorizationHeaderMalformed: [400, 'The authorization of the request is malformed.'],
  BadDigest: [400, 'The checksum of the request does not match the received bytes.'],
  BadRequest: [400, 'A preflight request needs the headers Origin and Access-Control-Request-Method.'],
  BucketAlreadyOwnedByYou: [409, 'The bucket exists already.'],
  BucketNotEmpty: [409, 'The bucket has objects, possibly in its trash.'],
  ContentSHA256Mismatch: [400, 'The SHA-256 of the body is not that of X-Amz-Content-Sha256.'],
  EntityTooLarge: [400, 'The object is too large.'],
  EntityTooSmall: [400, 'A part is smaller than 5 MiB and is not the last one.'],
  ExpiredToken: [400, 'The access key has expired.'],
  IncompleteBody: [400, 'The body ended early, or its length is not the declared one.'],
  InsufficientStorage: [507, 'The storage is full.'],
  InternalError: [500, 'The service met an unexpected error and has logged it.'],
  InvalidAccessKeyId: [403, 'The service has no such access key.'],
  InvalidArgument: [400, 'An argument is invalid.'],
  InvalidBucketName: [400, 'The bucket name is invalid.'],
  InvalidDigest: [400, 'The Content-MD5 or checksum is malformed.'],
  InvalidPart: [400, 'A part was not uploaded, or its ETag or checksum is another one.'],
  InvalidPartOrder: [400, 'The parts are not in ascending order.'],
  InvalidRange: [416, 'The range is outside the object.'],
  InvalidRequest: [400, 'The request is invalid.'],
  InvalidURI: [400, "Couldn't parse the specified URI."],
  KeyTooLongError: [400, 'The key is longer than 1,024 bytes.'],
  MalformedXML: [400, 'The XML of the body is malformed.'],
  MetadataTooLarge: [400, 'The metadata are larger than 2 KiB.'],
  MissingContentLength: [411, 'The request needs a Content-Length.'],
  NoSuchBucket: [404, 'The bucket does not exist.'],
  NoSuchKey: [404, 'The key does not exist.'],
  NoSuchUpload: [404, 'The multipart upload does not exist, or was completed or aborted.'],
  NotImplemented: [501, 'The service does not implement this operation.'],
  NotModified: [304, 'Not modified.'],
  PreconditionFailed: [412, 'A condition of the request is not met.'],
  QuotaExceeded: [403, 'The quota is exceeded.'],
  RequestTimeout: [400, 'The request took too long to arrive.'],
  RequestTimeTooSkewed: [
    403,
    'The time of the request differs from that of the service by more than 15 minutes.',
  ],
  ServiceUnavailable: [503, 'The service is unavailable. Try again.'],
  SignatureDoesNotMatch: [
    403,
    'The signature does not match. Check the secret access key and the way of signing.',
  ],
  SlowDown: [503, 'Too many requests. Try again later.'],
} as const satisfies Readonly<Record<string, readonly [status: number, text: string]>>

export type S3Code = keyof typeof kinds

/** An error as clients of the S3 protocol receive it. */
export class S3Error extends Error {
  override readonly name = 'S3Error'
  readonly code: S3Code
  readonly status: number
  readonly headers: Readonly<Record<string, string>>

  constructor(code: S3Code, detail?: string, headers: Readonly<Record<string, string>> = {}) {
    const [status, text] = kinds[code]
    super(detail ?? text)
    this.code = code
    this.status = status
    this.headers = headers
  }
}

/** The codes of faults. Those that are missing are `InternalError`. */
const codes: Partial<Record<FaultCode, S3Code>> = {
  'token-missing': 'AccessDenied',
  'token-malformed': 'InvalidAccessKeyId',
  'token-unknown': 'InvalidAccessKeyId',
  'token-revoked': 'InvalidAccessKeyId',
  'token-expired': 'ExpiredToken',
  'token-refused': 'AccessDenied',
  'scope-missing': 'AccessDenied',
  'signature-invalid': 'SignatureDoesNotMatch',
  'destination-refused': 'AccessDenied',
  'bucket-required': 'AccessDenied',
  'bucket-forbidden': 'AccessDenied',
  'bucket-unknown': 'NoSuchBucket',
  'bucket-exists': 'BucketAlreadyOwnedByYou',
  'bucket-not-empty': 'BucketNotEmpty',
  'media-unknown': 'NoSuchKey',
  'upload-unknown': 'NoSuchUpload',
  'variant-unavailable': 'NoSuchKey',
  'variant-unknown': 'InvalidArgument',
  'parameter-malformed': 'InvalidArgument',
  'precondition-failed': 'PreconditionFailed',
  'range-unsatisfiable': 'InvalidRange',
  'file-too-large': 'EntityTooLarge',
  'body-too-large': 'InvalidRequest',
  'type-refused': 'InvalidRequest',
  'file-unreadable': 'InvalidRequest',
  'file-refused': 'InvalidRequest',
  'scanner-unavailable': 'ServiceUnavailable',
  'upload-incomplete': 'IncompleteBody',
  'quota-exceeded': 'QuotaExceeded',
  'token-limit-exceeded': 'QuotaExceeded',
  'storage-full': 'InsufficientStorage',
  'rate-limited': 'SlowDown',
  'connections-too-many': 'SlowDown',
  'variants-busy': 'SlowDown',
  'catalog-busy': 'SlowDown',
  overloaded: 'SlowDown',
  'catalog-unavailable': 'ServiceUnavailable',
  'storage-unavailable': 'ServiceUnavailable',
  'read-only': 'ServiceUnavailable',
  'shutting-down': 'ServiceUnavailable',
  'request-timeout': 'RequestTimeout',
  'request-malformed': 'InvalidRequest',
  'headers-too-large': 'InvalidRequest',
  'http-version-unsupported': 'InvalidRequest',
  'method-unsupported': 'NotImplemented',
  'transfer-coding-unsupported': 'NotImplemented',
}

const objectCodes: Readonly<Record<ObjectFaultCode, S3Code>> = {
  'key-unknown': 'NoSuchKey',
  'key-too-long': 'KeyTooLongError',
  'key-malformed': 'InvalidURI',
  'key-reserved': 'AccessDenied',
  'headers-too-large': 'MetadataTooLarge',
  'precondition-failed': 'PreconditionFailed',
  'upload-unknown': 'NoSuchUpload',
  'part-number-invalid': 'InvalidArgument',
  'part-invalid': 'InvalidPart',
  'part-order': 'InvalidPartOrder',
  'part-too-small': 'EntityTooSmall',
  'checksum-mismatch': 'BadDigest',
  'range-invalid': 'InvalidArgument',
}

/** The error that a client receives for what was thrown. `report` returns the fault of what is not known here, and logs it. */
export function errorOf(error: unknown, report: (error: unknown) => Fault): S3Error {
  if (error instanceof S3Error) return error
  if (error instanceof ObjectFault) return new S3Error(objectCodes[error.code], error.message)
  return s3ErrorOf(report(error))
}

/** The error that a client receives for a fault. */
export function s3ErrorOf(fault: Fault): S3Error {
  const code = codes[fault.code] ?? 'InternalError'
  const headers = code === 'SlowDown' || code === 'ServiceUnavailable' ? { 'retry-after': '2' } : {}
  return new S3Error(code, fault.message, headers)
}

/** The document of an error. */
export const errorElement = ({ code, message }: S3Error, Resource: string, RequestId: string) => ({
  Error: { Code: code, Message: message, Resource, RequestId },
})
