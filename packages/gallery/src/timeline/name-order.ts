// The order of names of the service (docs/interface.md, K20). A test compares it with that of the service.

/** Marks of scripts that are read without them. The marks of Japanese and of Indic scripts are letters. */
const marks =
  /(?![\u3099\u309A])(?=\p{M})[\p{Script=Inherited}\p{Script=Cyrillic}\p{Script=Hebrew}\p{Script=Arabic}]/gu

/** Characters that are compared. */
const compared = 100

/** Without case and diacritics. */
function fold(name: string): string {
  const bare = name.normalize('NFKD').replace(marks, '')
  const cased = bare.replaceAll('ẞ', 'ß').toUpperCase().toLowerCase().replaceAll('ς', 'σ')
  return cased.normalize('NFKD').replace(marks, '').normalize('NFC')
}

/** Compares filenames in the order of their names: less than 0 if the first one is before the second one, 0 if they are equal in it. */
export function compareNames(one: string | null, other: string | null): number {
  const [left, right] = [partsOf(one), partsOf(other)]
  for (let index = 0; index < Math.min(left.length, right.length); index += 1) {
    const [a = '', b = ''] = [left[index], right[index]]
    if (a !== b)
      return isNumber(a) && isNumber(b) ? (BigInt(a) < BigInt(b) ? -1 : 1) : compareCharacters(a, b)
  }
  return left.length - right.length
}

/** The characters of a name that are compared, and its numbers, without zeros before them. */
const partsOf = (filename: string | null): readonly string[] =>
  [...fold(filename ?? '')]
    .slice(0, compared)
    .join('')
    .match(/\d+|[^\d]/gu)
    ?.map((part) => part.replace(/^0+(?=\d)/, '')) ?? []

const isNumber = (part: string): boolean => /^\d/.test(part)

const compareCharacters = (one: string, other: string): number =>
  (one.codePointAt(0) ?? 0) - (other.codePointAt(0) ?? 0)

/** The first letter of a filename in upper case, as one character for all numbers; empty without a filename. */
export function firstLetterOf(filename: string | null): string {
  const [first = ''] = partsOf(filename)
  return isNumber(first) ? '0–9' : first.toUpperCase()
}
