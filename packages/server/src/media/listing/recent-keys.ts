import { stringHash } from '../../core/string-hash.ts'

/** A power of two. */
const slots = 1_024

/**
 * Returns a function that tells whether it was called with a key before, and remembers the key. About as many keys as it has
 * slots are remembered, since each key replaces the one in its slot; in rare cases a key is taken for another one.
 */
export function createRecentKeys(): (key: string) => boolean {
  const hashes = new Uint32Array(slots)
  return (key) => {
    const hash = stringHash(key)
    const slot = hash & (slots - 1)
    if (hashes[slot] === hash) return true
    hashes[slot] = hash
    return false
  }
}
