import { errorCode } from '../core/error-code.ts'
import { Fault, type FaultCode, type ParameterFault } from '../core/fault.ts'

/** An error as plain data: the structured clone between threads drops `code`, `errcode` and the class of a Fault. */
export interface ErrorRecord {
  readonly message: string
  readonly stack: string | undefined
  readonly fault: { readonly code: FaultCode; readonly parameters: readonly ParameterFault[] } | null
  /** `code` of system errors, `errcode` of SQLite errors, where present. */
  readonly codes: Readonly<Record<string, string | number>>
  readonly cause: ErrorRecord | null
}

export function toRecord(thrown: unknown): ErrorRecord {
  const error = thrown instanceof Error ? thrown : new Error(String(thrown))
  const { message, stack, cause } = error
  return {
    message,
    stack,
    fault: error instanceof Fault ? { code: error.code, parameters: error.parameters } : null,
    codes: error instanceof Fault ? {} : codesOf(error),
    cause: cause instanceof Error ? toRecord(cause) : null,
  }
}

function codesOf(error: Error): Record<string, string | number> {
  const code = errorCode(error)
  const errcode = 'errcode' in error ? error.errcode : undefined
  return {
    ...(code !== null && { code }),
    ...(typeof errcode === 'number' && { errcode }),
  }
}

export function fromRecord({ message, stack, fault, codes, cause: causeRecord }: ErrorRecord): Error {
  const cause = causeRecord === null ? {} : { cause: fromRecord(causeRecord) }
  const error =
    fault === null
      ? new Error(message, cause)
      : new Fault(fault.code, message, { ...cause, parameters: fault.parameters })
  if (stack !== undefined) error.stack = stack
  return Object.assign(error, codes)
}
