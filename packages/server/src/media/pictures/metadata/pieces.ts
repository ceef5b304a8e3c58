/** A part of a new file: bytes `from` to `to` (exclusive) of the old one, other bytes, or zeros. */
export type Piece =
  | { readonly from: number; readonly to: number }
  | { readonly bytes: Uint8Array }
  | { readonly zeros: number }

/** Bytes of a file, read in parts. */
export interface ByteSource {
  readonly size: number
  /** Throws UnreadableFile if the file ends before. */
  read(position: number, length: number): Promise<Buffer>
  /** Some bytes from `position` on, at least one: those in memory, or the next ones of the file. */
  readSome(position: number): Promise<Buffer>
}

/** The file does not have the structure of its type, so its metadata cannot be found. */
export class UnreadableFile extends Error {
  override readonly name = 'UnreadableFile'
}

/** Entries of a table that is read into memory. */
export const maxTable = 1_000_000

/** Parts of a plan, which the event loop of the service reads at once. */
const maxPieces = 100_000

/** Bytes in all parts of a plan. */
export const maxLiterals = 8 * 1024 * 1024

/** Bytes `start` to `end` (exclusive) of a file. */
export interface Range {
  readonly start: number
  readonly end: number
}

/** Bytes of pictures, frames or sounds. */
export interface NeededRange extends Range {
  /** Whether the range ends with its box at the latest, because its length is not known exactly. */
  readonly isOpen?: boolean
}

/** What a box says about its file. */
export interface Content {
  readonly edits: readonly Edit[]
  readonly needed: readonly NeededRange[]
}

/** A range that is replaced by bytes of the same length, or by zeros. */
export interface Edit extends Range {
  readonly bytes: Uint8Array | null
}

export const lengthOf = (piece: Piece): number => {
  if ('bytes' in piece) return piece.bytes.byteLength
  return 'zeros' in piece ? piece.zeros : piece.to - piece.from
}

/** Throws UnreadableFile if the plan for a file of `size` bytes is too large, or copies what is not in the file. */
export function requireBounded(pieces: readonly Piece[], size: number): void {
  if (pieces.length > maxPieces) throw new UnreadableFile('the file has too many parts')
  let [literals, total] = [0, 0]
  for (const piece of pieces) {
    const length = lengthOf(piece)
    const isInFile = !('from' in piece) || (piece.from >= 0 && piece.to <= size)
    if (!Number.isSafeInteger(length) || length < 0 || !isInFile)
      throw new UnreadableFile('a part is not in the file')
    if ('bytes' in piece) literals += length
    total += length
  }
  if (literals > maxLiterals || total > size + maxLiterals)
    throw new UnreadableFile('the parts are too large')
}

/** Appends a piece, and joins it with the one before if both are copies of adjacent bytes, or zeros. Throws UnreadableFile. */
export function append(pieces: Piece[], piece: Piece): void {
  if (lengthOf(piece) === 0) return
  const last = pieces.at(-1)
  if (last && 'from' in last && 'from' in piece && last.to === piece.from)
    pieces[pieces.length - 1] = { from: last.from, to: piece.to }
  else if (last && 'zeros' in last && 'zeros' in piece)
    pieces[pieces.length - 1] = { zeros: last.zeros + piece.zeros }
  else if (pieces.length >= maxPieces) throw new UnreadableFile('the file has too many parts')
  else pieces.push(piece)
}

/** The first `size` bytes of a file with these edits. Throws UnreadableFile if two edits overlap. */
export function applyEdits(edits: readonly Edit[], size: number): Piece[] {
  const pieces: Piece[] = []
  let position = 0
  for (const { start, end, bytes } of edits.toSorted((one, other) => one.start - other.start)) {
    if (start < position) throw new UnreadableFile('two parts of the file overlap')
    if (start >= size) break
    append(pieces, { from: position, to: start })
    append(pieces, bytes === null ? { zeros: Math.min(end, size) - start } : { bytes })
    position = Math.min(end, size)
  }
  append(pieces, { from: position, to: size })
  return pieces
}

/** The parts of `within` that are in none of the ranges. */
export function gapsBetween(ranges: readonly Range[], within: Range): Range[] {
  const gaps: Range[] = []
  let position = within.start
  for (const { start, end } of ranges.toSorted((one, other) => one.start - other.start)) {
    if (start > position) gaps.push({ start: position, end: Math.min(start, within.end) })
    position = Math.max(position, end)
    if (position >= within.end) return gaps
  }
  gaps.push({ start: position, end: within.end })
  return gaps.filter(({ start, end }) => start < end)
}
