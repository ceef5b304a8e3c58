import {
  afterAllPaths,
  cleanPath,
  foldName,
  longestName,
  maxSearchLength,
  maxSearchTerms,
  nameKey,
} from '@mediabucket/client/rules'

/** Sorts after all paths that begin with `prefix`, in the order of their bytes. */
export const afterPaths = (prefix: string): string => prefix + afterAllPaths

/** Whether a stored text is one that `cleanPath` returns. */
export const isPath = (text: string): boolean => cleanPath(`./${text}`) === text

/** The text after the last dot, in lower case; null if there is no dot, or no text before it or after it. */
export function extensionOf(filename: string): string | null {
  const dot = filename.lastIndexOf('.')
  return dot > 0 && dot < filename.length - 1 ? filename.slice(dot + 1).toLowerCase() : null
}

/** Whether a text has U+0000, which no name or path has, and which PostgreSQL refuses in a text. */
export const hasNul = (text: string): boolean => text.includes('\0')

/** The terms of a search, folded; at least one. */
export type SearchTerms = readonly [string, ...string[]]

/** Parses the text of a search (docs/interface.md K11). Returns its terms in order; null if it is malformed. */
export function parseNameSearch(text: string): SearchTerms | null {
  if (text.length > maxSearchLength || hasNul(text)) return null
  const words = new Set(foldName(text.toWellFormed()).split(/\s+/u))
  words.delete('')
  // A term that is a part of another one selects nothing more.
  const [first, ...others] = [...words]
    .filter((word) => ![...words].some((other) => other !== word && other.includes(word)))
    .sort()
  return first === undefined || others.length >= maxSearchTerms ? null : [first, ...others]
}

// Searches read names from rows that have one line for each of 32 numbers: the folded name of the item with the number, or nothing. One
// comparison passes all names of a row. The line of a removed item stays until no item of the row is left. The trash has no names.

/** Numbers of one row. The rows of 32 usual names fit into a page of SQLite with their neighbours. */
export const namesPerRow = 32

/** The row that has the name of the item with this number. */
export const nameSlot = (seq: number): number => Math.floor(seq / namesPerRow)

/** The lines of new items, which are numbered from `firstSeq`, for each row. `padding` has the lines before them. */
export function nameLines(
  firstSeq: number,
  filenames: readonly (string | null)[],
): readonly { readonly slot: number; readonly padding: string; readonly lines: string }[] {
  const rows = []
  for (let done = 0; done < filenames.length; ) {
    const start = (firstSeq + done) % namesPerRow
    const names = filenames.slice(done, done + namesPerRow - start)
    rows.push({
      slot: nameSlot(firstSeq + done),
      padding: '\n'.repeat(start),
      lines: names.map(nameLine).join('\n'),
    })
    done += names.length
  }
  return rows
}

/** The line of an item. */
export const nameLine = (filename: string | null): string => (filename === null ? '' : foldName(filename))

/** The key of the name at which a list begins; null if the text is longer than a filename, or has U+0000. An empty text is before all names. */
export const parseStartName = (text: string): string | null =>
  Buffer.byteLength(text) > longestName || hasNul(text) ? null : nameKey(foldName(text.toWellFormed()))

/**
 * How often a part of the term follows itself at its start or its end, at the most: 199 for a term of 199 times `a` and a `b`, 1 for most words. At each
 * byte of a text, a comparison with the term can pass by so many of its characters in vain, for each one of this part.
 */
export function repetitionsOf(term: string): number {
  return Math.max(repetitionsAtStart(term), repetitionsAtStart([...term].reverse().join('')))
}

function repetitionsAtStart(term: string): number {
  /** For each beginning of the term, the length of its longest end that the term begins with too. */
  const borders = [0]
  let most = 1
  for (let index = 1; index < term.length; index += 1) {
    let border = borders[index - 1] ?? 0
    while (border > 0 && term[border] !== term[index]) border = borders[border - 1] ?? 0
    if (term[border] === term[index]) border += 1
    borders.push(border)
    most = Math.max(most, (index + 1) / (index + 1 - border))
  }
  return Math.floor(most)
}

/** The positions of the lines that contain all terms. */
export function matchingLines(names: string, terms: SearchTerms): readonly number[] {
  const [sought, ...others] = terms
  const found: number[] = []
  let line = 0
  let start = 0
  for (let at = names.indexOf(sought); at >= 0; ) {
    let end = names.indexOf('\n', start)
    while (end >= 0 && end < at) {
      line += 1
      start = end + 1
      end = names.indexOf('\n', start)
    }
    if (end < 0) end = names.length
    if (others.length === 0 || containsAll(names.slice(start, end), others)) found.push(line)
    at = end < names.length ? names.indexOf(sought, end + 1) : -1
  }
  return found
}

/** Whether a folded name has all terms. */
export const containsAll = (name: string, terms: readonly string[]) =>
  terms.every((term) => name.includes(term))

/** A pattern of GLOB of SQLite for texts that contain the term. GLOB is faster than `instr`. */
export const globPattern = (term: string): string => `*${term.replaceAll(/[*?[]/g, '[$&]')}*`

/**
 * A regular expression of PostgreSQL for texts with a line that has both of the two longest terms, also where these overlap; null for one term.
 * Rows without such a line are not sent to the service.
 */
export function linePattern(terms: readonly string[]): string | null {
  const [one, other] = terms.toSorted((one, other) => other.length - one.length)
  if (one === undefined || other === undefined) return null
  const overlapping = (start: string, end: string) =>
    [...Array(Math.min(start.length, end.length)).keys()]
      .filter((length) => length > 0 && start.endsWith(end.slice(0, length)))
      .map((length) => literal(start + end.slice(length)))
  const apart = (start: string, end: string) => `${literal(start)}.*${literal(end)}`
  const choices = [
    apart(one, other),
    apart(other, one),
    ...overlapping(one, other),
    ...overlapping(other, one),
  ]
  // With n, a dot matches no line feed.
  return `(?n)${choices.join('|')}`
}

const literal = (text: string) => text.replaceAll(/[\\^$.*+?()[\]{}|]/g, '\\$&')

const shape = /^[a-z0-9][a-z0-9-]{0,62}$/

/** The rule of `isBucketName`, for help and error messages. */
export const bucketNameRule =
  'A bucket name has 1 to 63 lower-case letters, digits and hyphens, and does not start with a hyphen.'

/** Validates every bucket name that a user enters. */
export const isBucketName = (name: string): boolean => shape.test(name)
