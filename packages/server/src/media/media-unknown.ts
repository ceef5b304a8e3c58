import { Fault } from '../core/fault.ts'

/** One and the same answer for every reason why an item cannot be had (docs/interface.md M3). */
export const mediaUnknown = (): Fault => new Fault('media-unknown', 'There is no such item.')
