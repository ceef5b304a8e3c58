import { decodeExtended } from 'content-disposition'
import type { ParameterisedValue } from './parameters.ts'

/** The name that a Content-Disposition gives, null where it gives none, undefined where `filename*` is malformed. */
export function dispositionFilename({ parameters }: ParameterisedValue): string | null | undefined {
  const extended = parameters.get('filename*')
  if (extended !== undefined) return decodeExtended(extended)
  return fromUtf8(parameters.get('filename'))
}

/** Header bytes are read as Latin-1; clients such as curl put UTF-8 there. */
function fromUtf8(text: string | undefined): string | null {
  if (text === undefined) return null
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(Buffer.from(text, 'latin1'))
  } catch {
    return text
  }
}
