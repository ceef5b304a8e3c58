import { crc32 } from 'node:zlib'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { combineCrc32, crc32Shift } from './crc32.ts'

test('RFC 1952: the checksum of a concatenation is computed from the checksums of its parts', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 5000 }), fc.uint8Array({ maxLength: 5000 }), (one, two) => {
      const joined = combineCrc32(crc32(one), crc32(two), crc32Shift(two.length))
      expect(joined).toBe(crc32(Buffer.concat([one, two])))
    }),
  )
})
