import { parseParameters } from '../headers/parameters.ts'
import { malformedForm } from './form-errors.ts'

/** Whether a Content-Type is multipart/form-data, even where its parameters are malformed. */
export const isMultipartForm = (contentType: string): boolean =>
  /^[ \t]*multipart\/form-data(?![\w!#$%&'*+.^`|~-])/i.test(contentType)

/** RFC 2046, section 5.1.1: 1 to 70 of these characters; the last one must not be a space. */
const validBoundary = /^[\w'()+,\-./:=? ]{0,69}[\w'()+,\-./:=?]$/

/** Returns the boundary of a Content-Type. Throws Fault `form-malformed`. */
export function parseBoundary(contentType: string): string {
  const boundary = parseParameters(contentType)?.parameters.get('boundary')
  if (boundary === undefined)
    throw malformedForm(
      'its Content-Type must have the form multipart/form-data; boundary=…, with one boundary',
    )
  if (!validBoundary.test(boundary))
    throw malformedForm(
      "its boundary must have 1 to 70 characters, each a letter, a digit, a space or one of '()+_,-./:=?, and must not end in a space",
    )
  return boundary
}
