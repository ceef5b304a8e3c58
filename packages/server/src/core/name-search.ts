/** The longest text of a search, in UTF-16 code units, and the most terms of one. */
export const maxSearchLength = 200
export const maxSearchTerms = 8

/** Marks of scripts that are read without them, and variation selectors. The marks of Japanese and of Indic scripts are letters. */
const marks =
  /[[\p{M}&&[\p{Script=Inherited}\p{Script=Cyrillic}\p{Script=Hebrew}\p{Script=Arabic}]]--[\u{3099}\u{309A}]]/gv

/**
 * The form in which names are stored for searches, and in which they are compared: in lower case, without diacritics, with compatible characters
 * replaced. It is composed, because the marks that remain make other letters (`が`), and the letters of a Korean syllable are not found in
 * longer ones (`가` in `각`). A change needs a migration that folds all names again.
 */
export function foldName(text: string): string {
  // Most names are ASCII, which the other steps do not change.
  if (isAscii.test(text)) return text.toLowerCase()
  const bare = text.normalize('NFKD').replace(marks, '')
  // `ß` has only an upper case of two letters, and `ẞ` has the lower case `ß`. A sigma at the end of a word has a lower case of its own.
  const cased = bare.replaceAll('ẞ', 'ß').toUpperCase().toLowerCase().replaceAll('ς', 'σ')
  return cased.normalize('NFKD').replace(marks, '').normalize('NFC')
}

const isAscii = /^[\0-\x7f]*$/

/** Parses the text of a search (docs/interface.md K11). Returns its terms, folded and in order; null if it is malformed. */
export function parseNameSearch(text: string): readonly string[] | null {
  if (text.length > maxSearchLength) return null
  const words = new Set(foldName(text.toWellFormed()).split(/\s+/u))
  words.delete('')
  // A term that is a part of another one selects nothing more.
  const terms = [...words].filter(
    (word) => ![...words].some((other) => other !== word && other.includes(word)),
  )
  return terms.length === 0 || terms.length > maxSearchTerms ? null : terms.sort()
}
