import { decodeExtended } from 'content-disposition'

const token = "[\\w!#$%&'*+.^`|~-]+"
const start = new RegExp(`[ \\t]*(${token}(?:/${token})?)[ \\t]*`, 'y')
const next = new RegExp(
  `;[ \\t]*(?:(${token})[ \\t]*=[ \\t]*(?:"((?:[^"\\\\]|\\\\.)*)"|([^\\s;"]+))[ \\t]*)?`,
  'sy',
)

/** A header of the form `value; name=value; name="value"`, such as Content-Type or Content-Disposition. */
export interface ParameterisedValue {
  /** In lower case. */
  readonly value: string
  /** Keyed by names in lower case. */
  readonly parameters: ReadonlyMap<string, string>
}

/** Returns null where the header is malformed or repeats a parameter. */
export function parseParameters(header: string): ParameterisedValue | null {
  start.lastIndex = 0
  const value = start.exec(header)?.[1]?.toLowerCase()
  if (value === undefined) return null
  const parameters = new Map<string, string>()
  for (next.lastIndex = start.lastIndex; next.lastIndex < header.length; ) {
    const match = next.exec(header)
    if (match === null) return null
    const [, name, quoted, plain = ''] = match
    if (name === undefined) continue
    if (parameters.has(name.toLowerCase())) return null
    parameters.set(name.toLowerCase(), quoted === undefined ? plain : unquote(quoted))
  }
  return { value, parameters }
}

/** Unescapes only `\"` and `\\` of RFC 9110, section 5.6.4, because some clients send unescaped Windows paths. */
const unquote = (text: string): string => text.replace(/\\(["\\])/g, '$1')

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
