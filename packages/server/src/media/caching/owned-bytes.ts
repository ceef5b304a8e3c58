import type { OpenVariant } from '../pictures/open-variant.ts'

/** Bytes whose memory has nothing else in it, except unused memory in front of them. */
export type OwnedBytes = Uint8Array<ArrayBuffer>

/** Unused memory in front of cached bytes, in which a response writes its head: then one write sends both. Bytes. */
export const headRoom = 768

/** The whole bytes, in memory of their own. */
export async function bytesOf({ content, size, read }: OpenVariant): Promise<OwnedBytes> {
  if (content.type === 'bytes') return ownsMemory(content.bytes) ? content.bytes : withHeadRoom(content.bytes)
  const bytes = allocate(size)
  if (size > 0) await read(bytes, 0)
  return bytes
}

const allocate = (size: number): OwnedBytes => Buffer.allocUnsafeSlow(headRoom + size).subarray(headRoom)

export const hasHeadRoom = ({ buffer, byteOffset, length }: OwnedBytes): boolean =>
  byteOffset === headRoom && buffer.byteLength === headRoom + length

export function withHeadRoom(bytes: Uint8Array): OwnedBytes {
  const copy = allocate(bytes.length)
  copy.set(bytes)
  return copy
}

const ownsMemory = (bytes: Uint8Array): bytes is Uint8Array<ArrayBuffer> =>
  bytes.buffer instanceof ArrayBuffer && bytes.buffer.byteLength === bytes.byteLength
