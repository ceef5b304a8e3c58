import { stringHash } from '../core/bytes.ts'

/**
 * Remembers at least the last `count` different keys, and at most twice as many. Two keys with the same hash count as one. The plain form is a
 * cache of each page at its first request; the bench case is `windowed-random` of `listing`.
 */
export class RecentKeys {
  readonly #count: number
  #current: HashTable
  #former: HashTable

  constructor(count: number) {
    this.#count = count
    this.#current = new HashTable(count)
    this.#former = new HashTable(count)
  }

  /** Whether it was called with the key before. Remembers the key. */
  noteAgain(key: string): boolean {
    // 0 is the value of an empty slot.
    const hash = stringHash(key) || 1
    if (this.#current.has(hash)) return true
    if (this.#current.size >= this.#count) {
      const oldest = this.#former
      this.#former = this.#current
      this.#current = oldest
      oldest.clear()
    }
    this.#current.add(hash)
    return this.#former.has(hash)
  }
}

/** A set of up to `count` hashes. A `Set` allocates memory as it grows, and is garbage when it is replaced. */
class HashTable {
  readonly #slots: Uint32Array
  size = 0

  constructor(count: number) {
    this.#slots = new Uint32Array(2 ** Math.ceil(Math.log2(2 * count + 1)))
  }

  has(hash: number): boolean {
    return this.#slots[this.#slotOf(hash)] === hash
  }

  /** `hash` must not be in the table. */
  add(hash: number): void {
    this.#slots[this.#slotOf(hash)] = hash
    this.size += 1
  }

  clear(): void {
    this.#slots.fill(0)
    this.size = 0
  }

  /** The slot of a hash, or the empty one where it belongs. */
  #slotOf(hash: number): number {
    const mask = this.#slots.length - 1
    let slot = hash & mask
    while (this.#slots[slot] !== 0 && this.#slots[slot] !== hash) slot = (slot + 1) & mask
    return slot
  }
}
