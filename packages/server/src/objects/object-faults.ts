import { ExplainedError } from '../core/faults.ts'

/** Why an operation on an object was refused, besides the faults that other operations have too. Only the wire maps codes to its own. */
export type ObjectFaultCode =
  | 'key-unknown'
  | 'key-too-long'
  | 'key-malformed'
  | 'key-reserved'
  | 'headers-too-large'
  | 'precondition-failed'
  | 'upload-unknown'
  | 'part-number-invalid'
  | 'part-invalid'
  | 'part-order'
  | 'part-too-small'
  | 'checksum-mismatch'
  | 'range-invalid'

/** An expected failure. `detail` is shown to the caller. */
export class ObjectFault extends ExplainedError {
  override readonly name = 'ObjectFault'
  readonly code: ObjectFaultCode

  constructor(code: ObjectFaultCode, detail: string) {
    super(detail)
    this.code = code
  }
}
