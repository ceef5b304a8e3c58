import { Fault } from '../../core/fault.ts'

/** `why` completes a sentence after a colon. */
export const malformedForm = (why: string) => new Fault('form-malformed', `The form cannot be read: ${why}.`)

export const incompleteForm = () => new Fault('upload-incomplete', 'The form ended before its last boundary.')
