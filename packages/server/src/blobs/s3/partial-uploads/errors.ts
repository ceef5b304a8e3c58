import { Fault } from '../../../core/fault.ts'
import { PartialUploadLost } from '../../partial-uploads.ts'
import { UncertainOutcome } from '../object-calls.ts'
import { StoreError } from '../s3-errors.ts'

export const lost = (why: string) => new PartialUploadLost(why)

export const conflict = () =>
  new Fault('upload-offset-conflict', 'Another request has changed the upload; send HEAD for its offset.')

/** The store lacks the multipart upload, or some of its recorded parts. */
const isGone = (error: unknown): boolean =>
  error instanceof Fault &&
  error.cause instanceof StoreError &&
  ['NoSuchUpload', 'InvalidPart', 'InvalidPartOrder'].includes(error.cause.reason)

/** The fault of a request to the store. If parts are gone, the upload is lost. */
export function faultOf(error: unknown): unknown {
  const fault = error instanceof UncertainOutcome ? error.cause : error
  return isGone(fault) ? lost('the store does not have the recorded parts of the upload') : fault
}
