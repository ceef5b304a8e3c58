import { stringHash } from '../../core/string-hash.ts'

/** The number of counters in each row, a power of two: more than the entries of a cache of the default size. */
const width = 2 ** 16
const mask = width - 1
const maxCount = 255

/** Estimates how often keys were requested lately. */
export interface RequestFrequency {
  count(key: string): void
  /** At least the true count up to 255, and rarely more. */
  of(key: string): number
}

/**
 * A count-min sketch of two rows, whose counters are halved after as many requests as a row has counters. So the memory is
 * constant, and requests of the past lose their weight (Einziger, Friedman, Manes: TinyLFU, 2017).
 */
export function createRequestFrequency(): RequestFrequency {
  const first = new Uint8Array(width)
  const second = new Uint8Array(width)
  let counted = 0

  function halve(): void {
    for (let index = 0; index < width; index += 1) {
      first[index] = (first[index] ?? 0) >>> 1
      second[index] = (second[index] ?? 0) >>> 1
    }
  }

  const read = (hash: number) => Math.min(first[hash & mask] ?? 0, second[hash >>> 16] ?? 0)

  return {
    count(key) {
      const hash = stringHash(key)
      const next = Math.min(read(hash) + 1, maxCount)
      // Only the lower counters are increased, which makes collisions cost less.
      if ((first[hash & mask] ?? 0) < next) first[hash & mask] = next
      if ((second[hash >>> 16] ?? 0) < next) second[hash >>> 16] = next
      counted += 1
      if (counted % width === 0) halve()
    },
    of: (key) => read(stringHash(key)),
  }
}
