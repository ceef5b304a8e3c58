/** The longest name of an item. Bytes. */
export const longestName = 255
/** Longer text after the last dot is not an extension: it can be cut off. */
const longestExtension = 32

/** The longest text of a search, in UTF-16 code units, and the most terms of one. */
export const maxSearchLength = 200
export const maxSearchTerms = 8

/**
 * Control characters, line separators, invisible characters, and characters that change the writing direction. The two
 * joiners are not removed, because emoji and several scripts need them.
 */
const unseen =
  /[\p{Cc}\p{Zl}\p{Zp}\p{Bidi_Control}\u{AD}\u{180E}\u{200B}\u{2060}-\u{206F}\u{FEFF}\u{FFF9}-\u{FFFB}]/gu

/** 1 to 255 printable ASCII characters without slashes and backslashes, and without a space at either end: nearly all names. */
const plainName = /^[!-.0-[\]-~](?:[ -.0-[\]-~]{0,253}[!-.0-[\]-~])?$/

/** Surrogates without a partner, which UTF-8 cannot encode. */
const surrogates = /\p{Cs}/gu

/** A name that is safe to display and to send, never a path; null if nothing remains (docs/interface.md U8). */
export function cleanFilename(raw: string | null | undefined): string | null {
  if (raw != null && plainName.test(raw)) return raw === '.' || raw === '..' ? null : raw
  const last = (raw ?? '').replace(surrogates, '\ufffd').split(/[/\\]/).at(-1) ?? ''
  const name = shorten(last.replace(unseen, '').normalize('NFC').trim())
  return name === '' || name === '.' || name === '..' ? null : name
}

/** The longest path of an item. Bytes. */
export const longestPath = 1_024

/** Sorts after every path with the same start: no path has this noncharacter. */
export const afterAllPaths = '\u{10FFFF}'

/**
 * The path of a file within an uploaded folder, from a name that contains a slash: names that are safe (`cleanFilename`), and a slash between
 * them. `./a.jpg` is the path of a file outside of folders. Null for a name without a slash, and for a path above the limit
 * (docs/interface.md U15).
 */
export function cleanPath(raw: string | null | undefined): string | null {
  if (raw == null || !raw.includes('/')) return null
  const names = raw.split('/').map((name) => cleanFilename(name.replaceAll(afterAllPaths, '')))
  if (names.at(-1) === null) return null
  const path = names.filter((name) => name !== null).join('/')
  return bytesOf(path) > longestPath ? null : path
}

function shorten(name: string): string {
  if (bytesOf(name) <= longestName) return name
  const tail = name.slice(name.lastIndexOf('.'))
  const extension = tail.startsWith('.') && bytesOf(tail) <= longestExtension ? tail : ''
  const stem = name.slice(0, name.length - extension.length)
  return firstBytes(stem, longestName - bytesOf(extension)).trimEnd() + extension
}

/** The bytes of a text in UTF-8. */
const bytesOf = (text: string): number => new TextEncoder().encode(text).length

/** The longest start of the text that fits into `limit` bytes of UTF-8 without splitting a character. */
const firstBytes = (text: string, limit: number): string =>
  text.slice(0, new TextEncoder().encodeInto(text, new Uint8Array(limit)).read)

/** Marks of scripts that are read without them, and variation selectors. The marks of Japanese and of Indic scripts are letters. */
const marks =
  /(?![\u3099\u309A])(?=\p{M})[\p{Script=Inherited}\p{Script=Cyrillic}\p{Script=Hebrew}\p{Script=Arabic}]/gu

/**
 * The form in which names are stored for searches, and in which they are compared: in lower case, without diacritics, with compatible characters
 * replaced. It is composed, because the marks that remain make other letters (`が`), and the letters of a Korean syllable are not found in
 * longer ones (`가` in `각`). A change needs a migration of the service that folds all names again.
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

/** Names are ordered by their first characters of Unicode, so that the keys fit into an index. */
const orderedCharacters = 100

/** The longest key of a name. Characters of Unicode. Each of the numbers becomes longer, and all are at least one other character apart. */
export const maxNameKey = 2 * orderedCharacters

/**
 * The key of a folded name in the order of names (docs/interface.md K20). Keys are compared by their code points. Numbers have their values in
 * this order: before its digits, a number has how many they are. A change needs a migration of the service that computes all keys again.
 */
export function nameKey(folded: string): string {
  const start =
    folded.length <= orderedCharacters
      ? folded
      : [...folded.slice(0, 2 * orderedCharacters)].slice(0, orderedCharacters).join('')
  return start.replace(/0*(\d+)/g, (_, digits: string) => countOf(digits.length) + digits)
}

/** A text of digits that is before those of larger counts, and that no other one begins with. */
const countOf = (count: number): string => '9'.repeat(count / 9) + (count % 9)

/** The longest name in an address. Characters. */
const longestAddressName = 80

/**
 * The name of a file in an address (docs/interface.md B13): letters, digits and marks of any script, and low lines, joined by hyphens, without
 * the extension; empty if nothing of the name remains.
 */
export function addressName(filename: string): string {
  const stem = filename.replace(/(?<=.)\.[^.]*$/s, '').normalize('NFC')
  const words = stem.match(/[\p{L}\p{N}\p{M}_]+/gu) ?? []
  return [...words.join('-')].slice(0, longestAddressName).join('').replace(/-+$/, '')
}
