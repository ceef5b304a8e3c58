import { BlobTruncatedError, type LocalBytes, type LocalContent, type OpenBlob } from './blobs.ts'
import { streamRange } from './stream-range.ts'

/** Bytes in memory as an open blob. */
export function openMemoryBlob(bytes: Uint8Array): OpenBlob {
  const content = { type: 'bytes', bytes } as const
  const blob: OpenBlob = {
    size: bytes.byteLength,
    content,
    share: async () => shared(content),
    async read(into, position) {
      const end = position + into.byteLength
      if (end > bytes.byteLength) throw new BlobTruncatedError('a blob ended before its size')
      into.set(bytes.subarray(position, end))
    },
    stream: (start, end) => streamRange(blob, start, end),
    close: async () => undefined,
  }
  return blob
}

/** Bytes or a file that stay available without a release. */
export const shared = (content: LocalContent): LocalBytes => ({
  content,
  isWhole: true,
  release: async () => undefined,
})
