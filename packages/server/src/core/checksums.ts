import { createHash } from 'node:crypto'
import { Crc32, Crc32c, Crc64Nvme, combineCrcs, crcKinds, type RunningChecksum } from './crc.ts'

/** The checksums that clients of the S3 protocol send, and their lengths in bytes. */
const lengths = { CRC32: 4, CRC32C: 4, CRC64NVME: 8, SHA1: 20, SHA256: 32 } as const

export type ChecksumAlgorithm = keyof typeof lengths

export const checksumAlgorithms: readonly ChecksumAlgorithm[] = [
  'CRC32',
  'CRC32C',
  'CRC64NVME',
  'SHA1',
  'SHA256',
]

export const isChecksumAlgorithm = (text: string): text is ChecksumAlgorithm => Object.hasOwn(lengths, text)

/** Starts a checksum of bytes that arrive one after another. */
export function newChecksum(algorithm: ChecksumAlgorithm): RunningChecksum {
  switch (algorithm) {
    case 'CRC32':
      return new Crc32()
    case 'CRC32C':
      return new Crc32c()
    case 'CRC64NVME':
      return new Crc64Nvme()
    default:
      return createHash(algorithm.toLowerCase())
  }
}

/** Whether a text is the Base64 of a checksum of this algorithm. */
export function isChecksum(algorithm: ChecksumAlgorithm, text: string): boolean {
  const bytes = Buffer.from(text, 'base64')
  return bytes.byteLength === lengths[algorithm] && bytes.toString('base64') === text
}

/** The checksum of one part of a file, in Base64, and the size of the part. */
interface PartChecksum {
  readonly value: string
  readonly size: number
}

/** The checksum of the checksums of the parts, as S3 writes it: Base64, a dash and their number. */
export function compositeChecksum(algorithm: ChecksumAlgorithm, parts: readonly PartChecksum[]): string {
  const checksum = newChecksum(algorithm)
  for (const { value } of parts) checksum.update(Buffer.from(value, 'base64'))
  return `${checksum.digest().toString('base64')}-${parts.length}`
}

/** The checksum of the whole file in Base64; null for an algorithm of which those of the parts do not determine it. */
export const wholeChecksum = (algorithm: ChecksumAlgorithm, parts: readonly PartChecksum[]): string | null =>
  algorithm === 'SHA1' || algorithm === 'SHA256'
    ? null
    : combineCrcs(
        crcKinds[algorithm],
        parts.map(({ value, size }) => ({ value: Buffer.from(value, 'base64'), size })),
      ).toString('base64')
