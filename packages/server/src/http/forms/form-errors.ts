import { Fault } from '../../core/fault.ts'

/** `why` completes the sentence after a colon. */
export const malformed = (why: string) => new Fault('form-malformed', `The form cannot be read: ${why}.`)

export const endedEarly = () => new Fault('upload-incomplete', 'The form ended before its last boundary.')
