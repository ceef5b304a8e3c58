import { crc32 } from 'node:zlib'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import {
  checksumAlgorithms,
  compositeChecksum,
  isChecksum,
  isChecksumAlgorithm,
  newChecksum,
  wholeChecksum,
} from './checksums.ts'

const checksumOf = (algorithm: (typeof checksumAlgorithms)[number], bytes: Uint8Array) => {
  const checksum = newChecksum(algorithm)
  checksum.update(bytes)
  return checksum.digest().toString('base64')
}

test.each([
  ['CRC32', 'cbf43926'],
  ['CRC32C', 'e3069283'],
  ['CRC64NVME', 'ae8b14860a799888'],
  ['SHA1', 'f7c3bc1d808e04732adf679965ccc34ca7ae3441'],
  ['SHA256', '15e2b0d3c33891ebb0f1ef609ec419420c20e320ce94c65fbc8c3312448eb225'],
] as const)('the %s of the check value of the CRC catalogue', (algorithm, expected) => {
  expect(checksumOf(algorithm, Buffer.from('123456789'))).toBe(
    Buffer.from(expected, 'hex').toString('base64'),
  )
})

test('a checksum is the same however the bytes are divided, and those of parts give that of the whole', () => {
  const divided = fc.array(fc.uint8Array({ minLength: 1, maxLength: 40 }), { minLength: 1, maxLength: 8 })
  fc.assert(
    fc.property(divided, (parts) => {
      const whole = Buffer.concat(parts)
      for (const algorithm of checksumAlgorithms) {
        const checksum = newChecksum(algorithm)
        for (const part of parts) checksum.update(part)
        const value = checksum.digest().toString('base64')
        expect(value).toBe(checksumOf(algorithm, whole))
        expect(isChecksum(algorithm, value)).toBe(true)
        const ofParts = parts.map((part) => ({ value: checksumOf(algorithm, part), size: part.length }))
        expect(wholeChecksum(algorithm, ofParts)).toBe(algorithm.startsWith('SHA') ? null : value)
      }
      const expected = Buffer.alloc(4)
      expected.writeUInt32BE(crc32(whole))
      expect(checksumOf('CRC32', whole)).toBe(expected.toString('base64'))
    }),
  )
})

test('a composite checksum is that of the checksums of the parts, and ends in their number', () => {
  const parts = ['one', 'two'].map((text) => ({ value: checksumOf('CRC32', Buffer.from(text)), size: 3 }))
  const joined = Buffer.concat(parts.map(({ value }) => Buffer.from(value, 'base64')))
  expect(compositeChecksum('CRC32', parts)).toBe(`${checksumOf('CRC32', joined)}-2`)
})

test('a text is a checksum only with the length of its algorithm, and in the only Base64 of its bytes', () => {
  expect(isChecksum('CRC32', 'AAAAAA==')).toBe(true)
  for (const text of ['', 'AAAAAA', 'AAAAAB==', 'AAAAAAAA', 'AAAA!A=='])
    expect(isChecksum('CRC32', text)).toBe(false)
  expect(isChecksumAlgorithm('toString')).toBe(false)
})
