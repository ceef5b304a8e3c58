import { hash, randomUUID } from 'node:crypto'
import { Fault } from '../../core/fault.ts'
import type { MediaId } from '../../core/media-id.ts'
import type { ReceivedBlob } from '../blobs.ts'
import type { PlacingThread } from './place-by-thread.ts'

/** Files up to this size are held in memory until they are in place: no more than a stream holds of any. Bytes. */
const smallSize = 65_536

/** What is held of all of them together; files beyond that take the way of large ones, which waits for the disk. Bytes. */
const mostHeld = 16 * 1024 * 1024

/**
 * Small files between their arrival and their place on the disk. A temporary file made beforehand would take each of
 * them through the pool of threads three times more, a wake and two switches of threads every time.
 */
export interface SmallBlobs {
  /** Null where a source of so many bytes is not held; nothing of it has been read then. Throws Fault `file-too-large`. */
  receive(source: AsyncIterable<Uint8Array>, limit: number, atMost: number): Promise<ReceivedBlob> | null
  /** The bytes of a file that is held. */
  bytes(handle: string): Uint8Array<ArrayBuffer> | null
  /** Puts a file that is held in place; durable when it resolves. */
  keep(handle: string, id: MediaId): Promise<void>
  discard(handle: string): void
}

export function createSmallBlobs(thread: Pick<PlacingThread, 'place'>): SmallBlobs {
  const held = new Map<string, Uint8Array<ArrayBuffer>>()
  let total = 0

  function take(handle: string): Uint8Array<ArrayBuffer> {
    const bytes = held.get(handle)
    if (bytes === undefined) throw new Error('bytes are kept or discarded that are not held')
    held.delete(handle)
    return bytes
  }

  async function receive(
    source: AsyncIterable<Uint8Array>,
    limit: number,
    room: Uint8Array<ArrayBuffer>,
  ): Promise<ReceivedBlob> {
    const reserved = room.byteLength
    let size = 0
    total += reserved
    try {
      for await (const chunk of source) {
        if (size + chunk.byteLength > limit)
          throw new Fault('file-too-large', `The file is larger than the limit of ${limit} bytes.`)
        room.set(chunk, size)
        size += chunk.byteLength
      }
    } catch (error) {
      total -= reserved
      throw error
    }
    // Of a form each file was given room for the whole form.
    const bytes = new Uint8Array(size === reserved ? room.buffer : room.buffer.transfer(size))
    total -= reserved - size
    const handle = randomUUID()
    held.set(handle, bytes)
    return { handle, size, sha256: hash('sha256', bytes, 'buffer'), head: bytes }
  }

  return {
    receive(source, limit, atMost) {
      if (atMost > smallSize || total + atMost > mostHeld) return null
      return receive(source, limit, Buffer.allocUnsafeSlow(atMost))
    },
    bytes: (handle) => held.get(handle) ?? null,
    async keep(handle, id) {
      const bytes = take(handle)
      const size = bytes.byteLength
      try {
        await thread.place(id, bytes)
      } finally {
        total -= size
      }
    },
    discard(handle) {
      total -= take(handle).byteLength
    },
  }
}
