import { open } from 'node:fs/promises'

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

/** Bytes that are fetched at least. All fetched ranges start at a multiple of it. */
const block = 65_536

/** Bytes that are fetched at once to search them, and the largest range that is kept in memory. */
const readAhead = 1024 * 1024

/** Ranges in memory. The directories of a TIFF file and their values are often in different places. */
const maxCached = 16

interface Cached extends Range {
  readonly bytes: Buffer
}

/**
 * A file of `size` bytes. `fetch` is called with ranges of at most `maxFetch` bytes that are in the file. A planner that reads the file many
 * times gets an UnreadableFile: the structure of the file must be hostile.
 */
export function createByteSource(
  size: number,
  fetch: (position: number, length: number) => Promise<Uint8Array>,
  maxFetch: number,
): ByteSource {
  /** The range that was used last is the last one. */
  const cache: Cached[] = []
  let budget = 4 * size + 64 * 1024 * 1024

  async function fetchAll({ start, end }: Range): Promise<Buffer> {
    // A small range costs as much as a block.
    budget -= Math.max(end - start, block)
    if (budget < 0) throw new UnreadableFile('the file must be read too often')
    const bytes = Buffer.allocUnsafeSlow(end - start)
    for (let done = 0; done < bytes.byteLength; ) {
      const part = await fetch(start + done, Math.min(maxFetch, bytes.byteLength - done))
      if (part.byteLength === 0) throw new UnreadableFile('the file ends too early')
      bytes.set(part, done)
      done += part.byteLength
    }
    return bytes
  }

  function findCached({ start, end }: Range): Cached | undefined {
    const index = cache.findLastIndex((range) => range.start <= start && end <= range.end)
    const [found] = index < 0 ? [] : cache.splice(index, 1)
    if (found) cache.push(found)
    return found
  }

  /** The range, which is extended to whole blocks, and to `minLength` bytes. */
  async function load({ start, end }: Range, minLength: number): Promise<Cached> {
    const from = start - (start % block)
    const to = Math.min(size, Math.max(Math.ceil(end / block) * block, from + minLength))
    const loaded = { start: from, end: to, bytes: await fetchAll({ start: from, end: to }) }
    cache.push(loaded)
    if (cache.length > maxCached) cache.shift()
    return loaded
  }

  return {
    size,
    async read(position, length) {
      const range = { start: position, end: position + length }
      if (position < 0 || range.end > size) throw new UnreadableFile('the file ends too early')
      const found = findCached(range)
      if (!found && length > readAhead) return fetchAll(range)
      const { start, bytes } = found ?? (await load(range, block))
      return bytes.subarray(position - start, range.end - start)
    },
    async readSome(position) {
      if (position < 0 || position >= size) throw new UnreadableFile('the file ends too early')
      const range = { start: position, end: position + 1 }
      const { start, bytes } = findCached(range) ?? (await load(range, readAhead))
      return bytes.subarray(position - start)
    },
  }
}

/** A file in memory. What is read shares its memory. */
export function createMemorySource(bytes: Buffer): ByteSource {
  const size = bytes.byteLength
  return {
    size,
    async read(position, length) {
      if (position < 0 || position + length > size) throw new UnreadableFile('the file ends too early')
      return bytes.subarray(position, position + length)
    },
    async readSome(position) {
      if (position < 0 || position >= size) throw new UnreadableFile('the file ends too early')
      return bytes.subarray(position)
    },
  }
}

/** Opens a file, which is closed after the work. */
export async function withFile<T>(path: string, work: (source: ByteSource) => Promise<T>): Promise<T> {
  const file = await open(path)
  try {
    const fetch = async (position: number, length: number) => {
      const { bytesRead, buffer } = await file.read(Buffer.alloc(length), 0, length, position)
      return buffer.subarray(0, bytesRead)
    }
    return await work(createByteSource((await file.stat()).size, fetch, readAhead))
  } finally {
    await file.close()
  }
}

/** Throws UnreadableFile if other bytes than zeros follow a colour profile, whose first number is its length: decoders ignore them. */
export function requireProfile(profile: Buffer): void {
  const length = profile.byteLength < 4 ? 0 : profile.readUInt32BE(0)
  if (length < 128 || length > profile.byteLength || profile.subarray(length).some((byte) => byte !== 0))
    throw new UnreadableFile('a colour profile has another length than it states')
}

/** A part of a file as a file of its own. */
export const partOf = (source: ByteSource, { start, end }: Range): ByteSource => ({
  size: end - start,
  async read(position, length) {
    if (position < 0 || position + length > end - start) throw new UnreadableFile('a part ends too early')
    return source.read(start + position, length)
  },
  async readSome(position) {
    if (position < 0 || position >= end - start) throw new UnreadableFile('a part ends too early')
    return (await source.readSome(start + position)).subarray(0, end - start - position)
  },
})
