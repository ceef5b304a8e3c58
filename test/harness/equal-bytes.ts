import { expect } from 'vitest'

/** Vitest compares arrays of bytes member by member, which takes seconds for megabytes. */
function areEqualBytes(one: unknown, other: unknown): boolean | undefined {
  if (!(one instanceof Uint8Array && other instanceof Uint8Array)) return undefined
  if (one.constructor !== other.constructor) return undefined
  return Buffer.compare(one, other) === 0
}

// A module, so that it runs once in each worker: the set-up that imports it runs for each test file.
expect.addEqualityTesters([areEqualBytes])
