import { Fault, type FaultCode, type ParameterFault } from '../../core/fault.ts'
import { asFault, resultCode } from './sqlite-errors.ts'

/** An error as data that crosses threads: a structured clone would lose the codes of both kinds. */
export interface ErrorRecord {
  readonly message: string
  readonly stack: string | undefined
  readonly faultCode: FaultCode | null
  readonly parameters: readonly ParameterFault[]
  readonly errcode: number | null
  readonly cause: ErrorRecord | null
}

export function toRecord(thrown: unknown): ErrorRecord {
  const error = asFault(thrown)
  if (!(error instanceof Error)) return { ...toRecord(new Error(String(error))), stack: undefined }
  return {
    message: error.message,
    stack: error.stack,
    faultCode: error instanceof Fault ? error.code : null,
    parameters: error instanceof Fault ? error.parameters : [],
    errcode: resultCode(error),
    cause: error.cause instanceof Error ? toCause(error.cause) : null,
  }
}

/** A cause stays what it is, or a busy cause would become a fault that has itself as its cause. */
const toCause = (error: Error): ErrorRecord => ({
  message: error.message,
  stack: error.stack,
  faultCode: null,
  parameters: [],
  errcode: resultCode(error),
  cause: null,
})

export function fromRecord(record: ErrorRecord): Error {
  const cause = record.cause === null ? {} : { cause: fromRecord(record.cause) }
  const error =
    record.faultCode === null
      ? new Error(record.message, cause)
      : new Fault(record.faultCode, record.message, { ...cause, parameters: record.parameters })
  if (record.stack !== undefined) error.stack = record.stack
  return record.errcode === null ? error : Object.assign(error, { errcode: record.errcode })
}
