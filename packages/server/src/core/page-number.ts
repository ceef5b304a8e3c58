import { Fault } from './fault.ts'

const shape = /^[1-9][0-9]{0,15}$/
const accepts = `page accepts one decimal integer from 1 to ${Number.MAX_SAFE_INTEGER}, without sign, leading zero, fraction, exponent or spaces.`

/** The requested page, 1 if absent; throws Fault `page-malformed` (docs/interface.md L11). */
export function parsePageNumber(value: string | readonly string[] | undefined): number {
  if (value === undefined) return 1
  const [text, ...repeated] = typeof value === 'string' ? [value] : value
  const page = text !== undefined && repeated.length === 0 && shape.test(text) ? Number(text) : Number.NaN
  if (!Number.isSafeInteger(page)) {
    throw new Fault('page-malformed', accepts, { parameters: [{ parameter: 'page', detail: accepts }] })
  }
  return page
}
