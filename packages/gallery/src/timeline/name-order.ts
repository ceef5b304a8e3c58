import { foldName, nameKey } from '@mediabucket/client/rules'

/** The key of a filename in the order of names of the service (docs/interface.md, K20). */
const keyOf = (filename: string | null): string => nameKey(foldName(filename ?? ''))

/** Compares filenames in the order of their names: less than 0 if the first one is before the second one, 0 if they are equal in it. */
export function compareNames(one: string | null, other: string | null): number {
  const [left, right] = [keyOf(one), keyOf(other)]
  let index = 0
  while (index < left.length && left[index] === right[index]) index += 1
  return (left.codePointAt(index) ?? -1) - (right.codePointAt(index) ?? -1)
}

/** The first letter of a filename in upper case, as one character for all numbers; empty without a filename. */
export function firstLetterOf(filename: string | null): string {
  const [first = ''] = foldName(filename ?? '')
  return /\d/.test(first) ? '0–9' : first.toUpperCase()
}
