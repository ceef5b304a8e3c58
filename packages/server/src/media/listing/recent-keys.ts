import { stringHash } from '../../core/string-hash.ts'

/**
 * Returns a function that returns whether it was called with a key before, and remembers the key. It remembers at least the last
 * `count` different keys, and at most twice as many. Two keys with the same hash count as one.
 */
export function createRecentKeys(count: number): (key: string) => boolean {
  let current = createHashTable(count)
  let former = createHashTable(count)
  return (key) => {
    // 0 is the value of an empty slot.
    const hash = stringHash(key) || 1
    if (current.has(hash)) return true
    if (current.size() >= count) {
      const oldest = former
      former = current
      current = oldest
      current.clear()
    }
    current.add(hash)
    return former.has(hash)
  }
}

/** A set of up to `count` hashes. A `Set` would allocate memory as it grows, and be garbage when it is replaced. */
function createHashTable(count: number) {
  const slots = new Uint32Array(2 ** Math.ceil(Math.log2(2 * count + 1)))
  const mask = slots.length - 1
  let size = 0

  /** The slot of a hash, or the empty one where it belongs. */
  function slotOf(hash: number): number {
    let slot = hash & mask
    while (slots[slot] !== 0 && slots[slot] !== hash) slot = (slot + 1) & mask
    return slot
  }

  return {
    size: () => size,
    has: (hash: number): boolean => slots[slotOf(hash)] === hash,
    /** `hash` must not be in the table. */
    add(hash: number): void {
      slots[slotOf(hash)] = hash
      size += 1
    },
    clear(): void {
      slots.fill(0)
      size = 0
    },
  }
}
