import { Fault } from '../../core/fault.ts'

/** A range that begins after the end of the bytes (docs/interface.md B3). */
export class RangeFault extends Fault {
  readonly headers: Readonly<Record<string, string>>

  constructor(size: number) {
    super('range-unsatisfiable', `The file has ${size} bytes; the range begins after them.`)
    this.headers = { 'content-range': `bytes */${size}` }
  }
}
