import { Fault, type FaultCode } from '../../core/fault.ts'

/** A fault whose problem has headers of its own. */
export class HeaderFault extends Fault {
  readonly headers: Readonly<Record<string, string>>

  constructor(code: FaultCode, detail: string, headers: Readonly<Record<string, string>>) {
    super(code, detail)
    this.headers = headers
  }
}
