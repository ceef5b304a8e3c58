import fc from 'fast-check'
import { expect, test } from 'vitest'
import { checksumAlgorithms } from '../core/checksums.ts'
import { listedChecksum, parseHeaders, storedHeaders } from '../objects/object-operations.ts'
import { entryText } from './list-entries.ts'
import { owner } from './s3-context.ts'
import { xmlOf } from './xml.ts'

const entries = fc.record({
  key: fc.string({ unit: 'binary' }),
  etag: fc.string(),
  lastModified: fc.nat(4e12),
  size: fc.nat(),
  checksum: fc.option(
    fc.record({
      algorithm: fc.constantFrom(...checksumAlgorithms),
      type: fc.constantFrom('FULL_OBJECT' as const, 'COMPOSITE' as const),
    }),
  ),
})

test('SP6 the text of an object in a list is that of its elements', () => {
  fc.assert(
    fc.property(entries, fc.boolean(), ({ key, ...object }, hasOwner) => {
      const { checksum } = object
      const elements = {
        Key: key,
        LastModified: new Date(object.lastModified).toISOString(),
        ETag: `"${object.etag}"`,
        ChecksumAlgorithm: checksum?.algorithm,
        ChecksumType: checksum?.type,
        Size: object.size,
        StorageClass: 'STANDARD',
        Owner: hasOwner ? owner : undefined,
      }
      expect(xmlOf(entryText(key, object, hasOwner))).toBe(xmlOf(elements))
    }),
  )
})

const hostile = fc.oneof(
  fc.string(),
  fc.constantFrom('{"checksum":{"algorithm":"CRC32","value":"","type":"FULL_OBJECT"}}', 'COMPOSITE'),
)
const checksums = fc.record({
  algorithm: fc.constantFrom(...checksumAlgorithms),
  value: fc.constantFrom('AAAAAA==', 'rosUhgp5mIg=', 'AAAAAA==-2'),
  type: fc.constantFrom('FULL_OBJECT' as const, 'COMPOSITE' as const),
})

test('SP6 the checksum in a list is that of the headers of an object, whatever its metadata', () => {
  const name = fc.oneof(fc.string(), fc.constantFrom('checksum', 'type', 'algorithm'))
  const metadata = fc.dictionary(name, hostile, { maxKeys: 3 })
  // An upload in parts has the members in another order.
  const sent = fc.option(
    fc.oneof(
      checksums,
      checksums.map(({ value, ...others }) => ({ ...others, value })),
    ),
  )
  fc.assert(
    fc.property(metadata, hostile, sent, (metadata, cacheControl, checksum) => {
      const headers = { cacheControl, metadata, ...(checksum && { checksum }) }
      const stored = storedHeaders(headers)
      const { algorithm, type } = parseHeaders(stored).checksum ?? {}
      expect(listedChecksum(stored)).toEqual(algorithm === undefined ? null : { algorithm, type })
    }),
  )
})
