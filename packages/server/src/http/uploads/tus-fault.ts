import { Type } from 'typebox'
import { Value } from 'typebox/value'
import { Fault, type FaultCode } from '../../core/fault.ts'

/** What the tus library throws: plain objects, and errors with the same members. */
const TusError = Type.Object({ status_code: Type.Integer(), body: Type.String() })

const codes: Readonly<Record<number, FaultCode>> = {
  400: 'upload-malformed',
  403: 'upload-malformed',
  404: 'upload-unknown',
  409: 'upload-offset-conflict',
  413: 'file-too-large',
  501: 'upload-malformed',
}

/** What the library threw as one of our faults; anything else stays what it is. */
export function faultOfTus(thrown: unknown): unknown {
  if (thrown instanceof Fault || !Value.Check(TusError, thrown)) return thrown
  const { status_code, body } = thrown
  const code = codes[status_code]
  return code === undefined ? thrown : new Fault(code, sentence(body))
}

/** An answer that the library gave without throwing. */
export const faultOfAnswer = (status: number, body: string): Fault =>
  new Fault(codes[status] ?? 'internal', sentence(body))

function sentence(text: string): string {
  const line = text.trim()
  return /[.!?]$/.test(line) ? line : `${line}.`
}
