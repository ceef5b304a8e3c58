/** Numbers, choices and bytes from a seed. */
export interface Random {
  /** A whole number from 0, below the limit. */
  below(limit: number): number
  /** True with a probability of 1 / `times`. */
  oneIn(times: number): boolean
  pick<T>(from: readonly [T, ...T[]]): T
  bytes(length: number): Buffer<ArrayBuffer>
}

/** Mulberry32. */
export function seeded(seed: number): Random {
  let state = seed >>> 0
  const next = (): number => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
  const below = (limit: number) => Math.floor(next() * limit)
  return {
    below,
    oneIn: (times) => below(times) === 0,
    pick: (from) => from[below(from.length)] ?? from[0],
    bytes: (length) => Buffer.from(Array.from({ length }, () => below(256))),
  }
}
