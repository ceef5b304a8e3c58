import fc from 'fast-check'
import { expect, test } from 'vitest'
import { ReadLengths } from './read-lengths.ts'

test('N7 a read has about 256 KiB of rows as long as those of the read before in the same bucket, up to 100 of them', () => {
  const read = fc.record({
    bucketId: fc.integer({ min: 1, max: 3 }),
    rows: fc.integer({ min: 0, max: 100 }),
    length: fc.integer({ min: 0, max: 300_000 }),
  })
  fc.assert(
    fc.property(fc.array(read), (history) => {
      const reads = new ReadLengths()
      const lengths = new Map<number, number>()
      for (const { bucketId, rows, length } of history) {
        reads.note(bucketId, rows, rows * length)
        if (rows > 0) lengths.set(bucketId, length)
        for (const [id, known] of lengths) {
          const next = reads.next(id)
          expect(next).toBeGreaterThanOrEqual(1)
          expect(next).toBeLessThanOrEqual(100)
          if (next > 1) expect(next * known).toBeLessThanOrEqual(256 * 1024)
          if (next < 100) expect((next + 1) * known).toBeGreaterThan(256 * 1024)
        }
      }
      expect(reads.next(4)).toBe(20)
    }),
  )
})
