import { parseParameters } from '../headers/parameters.ts'
import { malformed } from './form-errors.ts'

/** Whether a Content-Type names multipart/form-data, however its parameters are written. */
export const isMultipartForm = (contentType: string): boolean =>
  /^[ \t]*multipart\/form-data(?![\w!#$%&'*+.^`|~-])/i.test(contentType)

/** RFC 2046, section 5.1.1: 1 to 70 of these characters, the last of them no space. */
const valid = /^[\w'()+,\-./:=? ]{0,69}[\w'()+,\-./:=?]$/

/** The boundary that a Content-Type declares. Throws Fault `form-malformed`. */
export function parseBoundary(contentType: string): string {
  const boundary = parseParameters(contentType)?.parameters.get('boundary')
  if (boundary === undefined)
    throw malformed('its Content-Type must have the form multipart/form-data; boundary=…')
  if (!valid.test(boundary))
    throw malformed(
      "its boundary must have 1 to 70 characters, each a letter, a digit, a space or one of '()+_,-./:=?, and must not end in a space",
    )
  return boundary
}
