/** Posting lists in the order of their keys. The positions of `keys[n]` begin at `starts[n]` and end at `starts[n + 1]`. */
export interface Postings {
  readonly keys: Uint32Array
  readonly starts: Uint32Array
  readonly positions: Uint16Array
}

/** With a key of 32 bits, the number of a key fits into the 53 bits of an exact integer. A block of names has fewer keys. */
const maxKeys = 2 ** 21

/** Collects pairs of a key and a position, and groups them by key. Takes a hash table and one pass, where sorting takes several. */
export class PostingLists {
  /** One more than the number of the key, or 0. Keys are evenly distributed, so their lowest bits select a slot. */
  #table = new Uint32Array(1 << 15)
  #keys = new Uint32Array(1 << 14)
  #counts = new Uint32Array(1 << 14)
  /** One more than the last position of each key. */
  #lasts = new Uint32Array(1 << 14)
  #keyCount = 0
  /** The number of the key, and the position, of each pair. */
  #pairs = new Uint32Array(1 << 18)
  #positions = new Uint16Array(1 << 18)
  #pairCount = 0

  /** Positions must not descend. A pair that was added just before with this key is ignored. */
  add(key: number, position: number): void {
    const number = this.#numberOf(key)
    if (this.#lasts[number] === position + 1) return
    this.#lasts[number] = position + 1
    this.#counts[number] = (this.#counts[number] ?? 0) + 1
    if (this.#pairCount === this.#pairs.length) {
      this.#pairs = grown(this.#pairs)
      const positions = new Uint16Array(this.#positions.length * 2)
      positions.set(this.#positions)
      this.#positions = positions
    }
    this.#pairs[this.#pairCount] = number
    this.#positions[this.#pairCount++] = position
  }

  #numberOf(key: number): number {
    const mask = this.#table.length - 1
    for (let slot = key & mask; ; slot = (slot + 1) & mask) {
      const entry = this.#table[slot] ?? 0
      if (entry === 0) return this.#addKey(key, slot)
      if (this.#keys[entry - 1] === key) return entry - 1
    }
  }

  #addKey(key: number, slot: number): number {
    if (this.#keyCount === maxKeys) throw new RangeError('a block of names has too many different grams')
    const number = this.#keyCount++
    this.#table[slot] = number + 1
    this.#keys[number] = key
    if (this.#keyCount === this.#keys.length) {
      this.#keys = grown(this.#keys)
      this.#counts = grown(this.#counts)
      this.#lasts = grown(this.#lasts)
      this.#rehash()
    }
    return number
  }

  /** Twice as many slots as keys fit. */
  #rehash(): void {
    const table = new Uint32Array(this.#keys.length * 2)
    const mask = table.length - 1
    for (let number = 0; number < this.#keyCount; number += 1) {
      let slot = (this.#keys[number] ?? 0) & mask
      while (table[slot] !== 0) slot = (slot + 1) & mask
      table[slot] = number + 1
    }
    this.#table = table
  }

  sorted(): Postings {
    const order = new Float64Array(this.#keyCount)
    for (let number = 0; number < this.#keyCount; number += 1)
      order[number] = (this.#keys[number] ?? 0) * maxKeys + number
    order.sort()
    const keys = new Uint32Array(this.#keyCount)
    const starts = new Uint32Array(this.#keyCount + 1)
    /** Where the next position of each key is written, by the number of the key. */
    const offsets = new Uint32Array(this.#keyCount)
    for (let index = 0, count = 0; index < this.#keyCount; index += 1) {
      const number = (order[index] ?? 0) % maxKeys
      keys[index] = this.#keys[number] ?? 0
      offsets[number] = count
      count += this.#counts[number] ?? 0
      starts[index + 1] = count
    }
    const [pairs, from] = [this.#pairs, this.#positions]
    const positions = new Uint16Array(this.#pairCount)
    for (let index = 0; index < this.#pairCount; index += 1) {
      const number = pairs[index] ?? 0
      const offset = offsets[number] ?? 0
      positions[offset] = from[index] ?? 0
      offsets[number] = offset + 1
    }
    return { keys, starts, positions }
  }
}

function grown(array: Uint32Array<ArrayBuffer>): Uint32Array<ArrayBuffer> {
  const longer = new Uint32Array(array.length * 2)
  longer.set(array)
  return longer
}
