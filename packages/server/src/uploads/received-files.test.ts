import fc from 'fast-check'
import { expect, test } from 'vitest'
import { SharedMemory } from './received-files.ts'

test('allocations have their sizes, do not overlap, and waste little memory', () => {
  fc.assert(
    fc.property(fc.array(fc.nat(100_000), { maxLength: 200 }), (sizes) => {
      const memory = new SharedMemory()
      const parts = sizes.map((size, at) => memory.allocate(size).fill(at))
      expect(parts.map(({ length }) => length)).toEqual(sizes)
      expect(parts.every((part, at) => part.every((byte) => byte === at % 256))).toBe(true)
      const used = sizes.reduce((sum, size) => sum + size, 0)
      expect(memory.length).toBeLessThanOrEqual(2 * used + 65_536)
    }),
    { numRuns: 50 },
  )
})

test('small allocations share buffers', () => {
  const memory = new SharedMemory()
  const buffers = new Set(Array.from({ length: 100 }, () => memory.allocate(2_000).buffer))
  expect(buffers.size).toBeLessThan(12)
})
