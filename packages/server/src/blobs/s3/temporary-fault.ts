import { errorCode } from '../../core/error-code.ts'
import { Fault } from '../../core/fault.ts'

const shortages: ReadonlySet<string> = new Set(['ENOSPC', 'EDQUOT', 'EMFILE', 'ENFILE', 'ENOMEM'])

/**
 * Maps a lack of space, descriptors or memory for a temporary file to Fault `overloaded`: the store itself is not full, and the space is
 * free again when other requests end. Returns other errors unchanged.
 */
export function asTemporaryFault(error: unknown): unknown {
  if (!shortages.has(errorCode(error) ?? '')) return error
  return new Fault('overloaded', 'The service has no space left for temporary files.', { cause: error })
}
