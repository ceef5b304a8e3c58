export const hasBit = (bitmap: Uint8Array, position: number): boolean =>
  ((bitmap[position >>> 3] ?? 0) & (1 << (position & 7))) !== 0

export function setBit(bitmap: Uint8Array, position: number): void {
  const index = position >>> 3
  bitmap[index] = (bitmap[index] ?? 0) | (1 << (position & 7))
}

export function clearBit(bitmap: Uint8Array, position: number): void {
  const index = position >>> 3
  bitmap[index] = (bitmap[index] ?? 0) & ~(1 << (position & 7))
}

/** The number of bits that are set in 32. */
function countBits(word: number): number {
  const pairs = word - ((word >>> 1) & 0x5555_5555)
  const fours = (pairs & 0x3333_3333) + ((pairs >>> 2) & 0x3333_3333)
  return Math.imul((fours + (fours >>> 4)) & 0x0f0f_0f0f, 0x0101_0101) >>> 24
}

/** A set of positions. Whole sets are processed by words, which is several times faster than by bytes. */
export class Bitmap {
  /** One bit for each position, the lowest first. */
  readonly bytes: Uint8Array
  readonly #words: Uint32Array

  /** A multiple of 32 positions, none of which is in the set. */
  constructor(size: number) {
    const buffer = new ArrayBuffer(size / 8)
    this.bytes = new Uint8Array(buffer)
    this.#words = new Uint32Array(buffer)
  }

  add(position: number): void {
    setBit(this.bytes, position)
  }

  /** Removes the positions that the other set of this size does not have. */
  intersect(other: Bitmap): void {
    const [own, others] = [this.#words, other.#words]
    for (let index = 0; index < own.length; index += 1) own[index] = (own[index] ?? 0) & (others[index] ?? 0)
  }

  count(): number {
    let count = 0
    for (const word of this.#words) if (word !== 0) count += countBits(word)
    return count
  }

  /** Appends the positions, ascending, each increased by `first`. */
  appendTo(numbers: number[], first: number): void {
    for (let index = 0; index < this.#words.length; index += 1) {
      if (this.#words[index] === 0) continue
      for (let byte = index * 4; byte < index * 4 + 4; byte += 1)
        for (let rest = this.bytes[byte] ?? 0, bit = 0; rest !== 0; rest >>>= 1, bit += 1)
          if (rest & 1) numbers.push(first + byte * 8 + bit)
    }
  }
}
