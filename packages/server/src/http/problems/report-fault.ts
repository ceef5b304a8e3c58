import type { IncomingMessage } from 'node:http'
import type { BaseLogger } from 'pino'
import { errorCode } from '../../core/error-code.ts'
import { Fault, type FaultCode } from '../../core/fault.ts'
import type { RequestLimits } from '../limits/request-limits.ts'
import { problemKinds } from './problems.ts'

/** The code and the detail of a fault. */
export type CodeAndDetail = readonly [FaultCode, detail: string]

export const incompleteBody: CodeAndDetail = [
  'upload-incomplete',
  'The connection ended before the whole body had arrived.',
]

/** The system has no file descriptor, memory, thread or process left. */
const resourceErrors: ReadonlySet<string> = new Set(['EMFILE', 'ENFILE', 'ENOMEM', 'EAGAIN'])

/** Turns a thrown value into a Fault: `internal`, without details, where it is unexpected. */
function toFault(error: unknown): Fault {
  if (error instanceof Fault) return error
  const code = errorCode(error)
  if (code === 'ECONNRESET') return new Fault(...incompleteBody, { cause: error })
  if (code !== null && resourceErrors.has(code))
    return new Fault('overloaded', 'The service has no resources left for this request.', { cause: error })
  return new Fault('internal', 'The service met an unexpected error and has logged it.', { cause: error })
}

/** A full bucket, a reached reserve of free space and a stop of the service are no errors, although their status is 5xx. */
const isExpected = ({ code, cause }: Fault): boolean =>
  code === 'quota-exceeded' || code === 'shutting-down' || (code === 'storage-full' && cause === undefined)

/** Returns the fault to respond with. Counts it against the rate limits; counts and logs errors of the service. */
export type FaultReporter = (error: unknown, request: IncomingMessage, requestId: string) => Fault

export function createFaultReporter(parts: {
  readonly limits: Pick<RequestLimits, 'countAuthFailure'>
  /** Counts errors that the storage caused. */
  readonly countStorageError: (error: unknown) => void
  readonly log: Pick<BaseLogger, 'error'>
}): FaultReporter {
  const { limits, countStorageError, log } = parts
  return (error, request, requestId) => {
    const fault = limits.countAuthFailure(toFault(error), request)
    if (problemKinds[fault.code].status >= 500 && !isExpected(fault)) {
      countStorageError(fault)
      log.error({ requestId, err: fault.cause ?? fault }, fault.message)
    }
    return fault
  }
}
