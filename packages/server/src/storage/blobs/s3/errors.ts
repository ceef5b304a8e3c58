import { S3ServiceException } from '@aws-sdk/client-s3'
import { errorCode, Fault } from '../../../core/faults.ts'

/** An error of the store, without the response and the headers of the request, which could contain credentials. */
export class StoreError extends Error {
  override readonly name = 'StoreError'
  /** The store's name of the error, such as `NoSuchUpload`; empty if there is none. */
  readonly reason: string

  constructor(message: string, reason = '') {
    super(message)
    this.reason = reason
  }
}

/** The status of the response; null if there was none. */
export const statusOf = (error: unknown): number | null =>
  error instanceof S3ServiceException ? (error.$metadata.httpStatusCode ?? null) : null

/** The store has nothing under the key. A missing bucket is another error. */
export const isMissing = (error: unknown): boolean =>
  error instanceof S3ServiceException &&
  statusOf(error) === 404 &&
  ['NoSuchKey', 'NotFound', 'NoSuchUpload'].includes(error.name)

/** The store has rejected the request, so it has changed nothing. */
export const isRejected = (error: unknown): boolean => {
  const status = statusOf(error)
  return status !== null && status >= 400 && status < 500
}

const fullNames: ReadonlySet<string> = new Set(['QuotaExceeded', 'XMinioStorageFull', 'InsufficientStorage'])

/** Errors without a response: no connection, no response in time, no credentials. */
const unreachableNames: ReadonlySet<string> = new Set([
  'AbortError',
  'TimeoutError',
  'CredentialsProviderError',
])
const unreachableCodes: ReadonlySet<string> = new Set([
  'ECONNREFUSED',
  'ECONNRESET',
  'EPIPE',
  'ENOTFOUND',
  'EAI_AGAIN',
  'ETIMEDOUT',
  'EHOSTUNREACH',
  'ENETUNREACH',
])

/** Maps errors of the store to Fault `storage-full` and `storage-unavailable`. Returns other errors unchanged. */
export function asStoreFault(error: unknown): unknown {
  if (error instanceof Fault || !(error instanceof Error)) return error
  const cause = new StoreError(
    `${error.name}: ${error.message} (${statusOf(error) ?? errorCode(error) ?? 'no response'})`,
    error.name,
  )
  if (error instanceof S3ServiceException && fullNames.has(error.name))
    return new Fault('storage-full', 'The store has not enough free space for these bytes.', { cause })
  if (
    error instanceof S3ServiceException ||
    error instanceof StoreError ||
    unreachableNames.has(error.name) ||
    unreachableCodes.has(errorCode(error) ?? '')
  )
    return new Fault('storage-unavailable', 'The stored bytes are unavailable.', { cause })
  return error
}

/** The error of a response whose next bytes did not arrive in time. */
export const stalled = (): Fault =>
  new Fault('storage-unavailable', 'The stored bytes are unavailable.', {
    cause: new StoreError('the store sends no more bytes'),
  })

const shortages: ReadonlySet<string> = new Set(['ENOSPC', 'EDQUOT', 'EMFILE', 'ENFILE', 'ENOMEM'])

/**
 * Maps a lack of space, descriptors or memory for a temporary file to Fault `overloaded`: the store itself is not full, and the space is
 * free again when other requests end. Returns other errors unchanged.
 */
export function asTemporaryFault(error: unknown): unknown {
  if (!shortages.has(errorCode(error) ?? '')) return error
  return new Fault('overloaded', 'The service has no space left for temporary files.', { cause: error })
}
