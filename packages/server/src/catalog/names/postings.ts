import { Bitmap, setBit } from './bitmap.ts'

// A posting list has the positions of items in a segment, ascending. It is stored as a bitmap of an eighth of the segment's size, or, if
// that is shorter, as the distances between the positions, as variable-length integers. Its length distinguishes the two.

/** Appends variable-length integers and bytes to a buffer that grows. */
export class ByteWriter {
  #bytes = new Uint8Array(4096)
  length = 0

  #reserve(count: number): void {
    if (this.length + count <= this.#bytes.length) return
    const grown = new Uint8Array(Math.max(this.#bytes.length * 2, this.length + count))
    grown.set(this.#bytes.subarray(0, this.length))
    this.#bytes = grown
  }

  /** An integer from 0 to 2³² − 1: seven bits in each byte, the lowest first. */
  integer(value: number): void {
    this.#reserve(5)
    let rest = value
    while (rest > 0x7f) {
      this.#bytes[this.length++] = (rest & 0x7f) | 0x80
      rest >>>= 7
    }
    this.#bytes[this.length++] = rest
  }

  bytes(added: Uint8Array): void {
    this.#reserve(added.length)
    this.#bytes.set(added, this.length)
    this.length += added.length
  }

  /** The bytes from `start`, valid until more are appended. */
  from(start: number): Uint8Array {
    return this.#bytes.subarray(start, this.length)
  }

  /** A copy of all bytes, in a buffer of their own. */
  copy(): Uint8Array<ArrayBuffer> {
    return this.#bytes.slice(0, this.length)
  }
}

/** Appends the list of the positions from `start` to below `end` of an array. */
export function writePostings(
  writer: ByteWriter,
  scratch: ByteWriter,
  size: number,
  {
    positions,
    start,
    end,
  }: { readonly positions: Uint16Array; readonly start: number; readonly end: number },
): void {
  const bitmapLength = size / 8
  scratch.length = 0
  let next = 0
  for (let index = start; index < end && scratch.length < bitmapLength; index += 1) {
    const position = positions[index] ?? 0
    scratch.integer(position - next)
    next = position + 1
  }
  if (scratch.length < bitmapLength) {
    writer.integer(scratch.length)
    writer.bytes(scratch.from(0))
    return
  }
  const bitmap = new Uint8Array(bitmapLength)
  for (let index = start; index < end; index += 1) setBit(bitmap, positions[index] ?? 0)
  writer.integer(bitmapLength)
  writer.bytes(bitmap)
}

/** The positions of a list. Throws RangeError if the list is damaged. */
export function readPostings(list: Uint8Array, size: number): Bitmap {
  const bitmap = new Bitmap(size)
  if (list.length === size / 8) {
    bitmap.bytes.set(list)
    return bitmap
  }
  const reader = new ByteReader(list)
  for (let next = 0; !reader.isAtEnd(); next += 1) {
    next += reader.integer()
    if (next >= size) throw new RangeError('a posting list exceeds its segment')
    bitmap.add(next)
  }
  return bitmap
}

export class ByteReader {
  readonly #bytes: Uint8Array
  #offset = 0

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes
  }

  isAtEnd(): boolean {
    return this.#offset >= this.#bytes.length
  }

  integer(): number {
    let value = 0
    for (let shift = 0; shift < 35; shift += 7) {
      const byte = this.#bytes[this.#offset++]
      if (byte === undefined) break
      value |= (byte & 0x7f) << shift
      if (byte < 0x80) return value >>> 0
    }
    throw new RangeError('the index of names has an incomplete number')
  }

  bytes(length: number): Uint8Array {
    const end = this.#offset + length
    if (end > this.#bytes.length) throw new RangeError('the index of names has an incomplete list')
    const found = this.#bytes.subarray(this.#offset, end)
    this.#offset = end
    return found
  }
}
