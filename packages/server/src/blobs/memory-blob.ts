import type { OpenBlob } from './blobs.ts'

/** Bytes in memory as an open blob; they must not change. */
export const openMemoryBlob = (bytes: Uint8Array): Pick<OpenBlob, 'size' | 'content' | 'read' | 'close'> => ({
  size: bytes.byteLength,
  content: bytes,
  read: async (into, position) => into.set(bytes.subarray(position, position + into.byteLength)),
  close: async () => undefined,
})
