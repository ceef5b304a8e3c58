import { randomInt } from 'node:crypto'

const given = process.env['TEST_SEED']

/** The seed of `TEST_SEED`, if it is set. */
export const givenSeed = given === undefined ? undefined : Number(given)

/** The seed of `TEST_SEED`, or a new one; printed, so that a failure can be repeated. */
export function testSeed(): number {
  const seed = givenSeed ?? randomInt(2 ** 31)
  console.log(`TEST_SEED=${seed}`)
  return seed
}

/** Integers below a limit, from the seed that this prints. */
export const seededRandom = () => random(testSeed())

/** Integers below a limit, the same for the same seed (mulberry32). */
export function random(seed: number): (limit: number) => number {
  let state = seed
  return (limit) => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) % limit
  }
}
