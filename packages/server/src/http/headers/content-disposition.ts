import { decodeExtended } from 'content-disposition'
import type { ParameterisedValue } from './parameters.ts'

/** The filename of a Content-Disposition header: null without one, undefined where `filename*` is malformed. */
export function dispositionFilename({ parameters }: ParameterisedValue): string | null | undefined {
  const extended = parameters.get('filename*')
  if (extended !== undefined) return decodeExtended(extended)
  return decodeUtf8(parameters.get('filename'))
}

/** Only characters that Latin-1 and UTF-8 encode equally. */
const ascii = /^[\x20-\x7e]*$/

/** Node decodes headers as Latin-1, but clients such as curl send UTF-8. */
function decodeUtf8(text: string | undefined): string | null {
  if (text === undefined) return null
  if (ascii.test(text)) return text
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(Buffer.from(text, 'latin1'))
  } catch {
    return text
  }
}
