import { isLabelKey, isLabelValue, maxLabels } from '@mediabucket/client/rules'

/** Why typed labels are refused: the row and the field of the first mistake. */
export interface LabelMistake {
  readonly row: number
  readonly field: 'key' | 'value'
  readonly reason: 'noKey' | 'badKey' | 'badValue' | 'twice' | 'tooMany'
  /** The key of the row, or its value if it has no key. */
  readonly text: string
}

type Labels = Readonly<Record<string, string>>

/** The key and the value of a row. A label that was pasted into the field of the key, such as `album = 42`, is divided. */
function pairOf([key, value]: readonly [string, string]): readonly [string, string] {
  const end = value.trim() === '' ? key.indexOf('=') : -1
  return end < 0 ? [key.trim(), value.trim()] : [key.slice(0, end).trim(), key.slice(end + 1).trim()]
}

/** The labels of typed rows. Empty rows are left out, and keys get lower-case letters, which are the only ones that keys have. */
export function readLabels(rows: readonly (readonly [key: string, value: string])[]): Labels | LabelMistake {
  const labels = new Map<string, string>()
  for (const [row, typed] of rows.entries()) {
    const [key, value] = pairOf(typed)
    if (key === '' && value === '') continue
    const mistake = mistakeOf(key, value, labels)
    if (mistake !== null) return { row, ...mistake }
    labels.set(lowerCase(key), value)
  }
  return Object.fromEntries(labels)
}

/** With the letters of ASCII in lower case only: the Kelvin sign would become one of them. */
const lowerCase = (key: string): string => key.replace(/[A-Z]+/g, (letters) => letters.toLowerCase())

function mistakeOf(
  key: string,
  value: string,
  others: ReadonlyMap<string, string>,
): Omit<LabelMistake, 'row'> | null {
  if (key === '') return { field: 'key', reason: 'noKey', text: value }
  if (!isLabelKey(lowerCase(key))) return { field: 'key', reason: 'badKey', text: key }
  if (!isLabelValue(value)) return { field: 'value', reason: 'badValue', text: key }
  if (others.has(lowerCase(key))) return { field: 'key', reason: 'twice', text: key }
  return others.size < maxLabels ? null : { field: 'key', reason: 'tooMany', text: key }
}

export const isMistake = (read: Labels | LabelMistake): read is LabelMistake =>
  typeof read['row'] === 'number'

/** The labels in the fields of a form. */
export function labelsOf(fields: FormData): Labels | LabelMistake {
  const values = fields.getAll('label-value')
  return readLabels(fields.getAll('label-key').map((key, row) => [`${key}`, `${values[row] ?? ''}`]))
}

/** The changes from labels to the typed ones, whose values are trimmed. */
export function changedLabels(opened: Labels, typed: Labels): Readonly<Record<string, string | null>> {
  const before = new Map(Object.entries(opened))
  const removed = [...before.keys()].filter((key) => !Object.hasOwn(typed, key))
  const set = Object.entries(typed).filter(([key, value]) => before.get(key)?.trim() !== value)
  return Object.fromEntries([...removed.map((key): [string, null] => [key, null]), ...set])
}
