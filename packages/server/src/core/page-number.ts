import { Fault } from './fault.ts'

const shape = /^[1-9][0-9]{0,15}$/
const accepts = `page accepts one decimal integer from 1 to ${Number.MAX_SAFE_INTEGER}, without sign, leading zero, fraction, exponent or spaces.`

/** The requested page, 1 if absent. A repeated parameter is a list. Throws Fault `page-malformed` (docs/interface.md L11). */
export function parsePageNumber(value: unknown): number {
  if (value === undefined) return 1
  const [text, ...repeated]: readonly unknown[] = Array.isArray(value) ? value : [value]
  const isNumber = typeof text === 'string' && repeated.length === 0 && shape.test(text)
  const page = isNumber ? Number(text) : Number.NaN
  if (!Number.isSafeInteger(page)) {
    throw new Fault('page-malformed', accepts, { parameters: [{ parameter: 'page', detail: accepts }] })
  }
  return page
}
