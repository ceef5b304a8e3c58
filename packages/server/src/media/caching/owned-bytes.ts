import { allocateWithHeadRoom, withHeadRoom } from '../../core/head-room.ts'
import type { OpenVariant } from '../pictures/open-variant.ts'

/** Bytes whose memory has nothing else in it, except unused memory in front of them. */
export type OwnedBytes = Uint8Array<ArrayBuffer>

/** The whole bytes, in memory of their own. */
export async function bytesOf({ content, size, read }: OpenVariant): Promise<OwnedBytes> {
  if (content.type === 'bytes') return ownsMemory(content.bytes) ? content.bytes : withHeadRoom(content.bytes)
  const bytes = allocateWithHeadRoom(size)
  if (size > 0) await read(bytes, 0)
  return bytes
}

const ownsMemory = (bytes: Uint8Array): bytes is Uint8Array<ArrayBuffer> =>
  bytes.buffer instanceof ArrayBuffer && bytes.buffer.byteLength === bytes.byteLength
