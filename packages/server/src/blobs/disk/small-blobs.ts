import { hash, randomUUID } from 'node:crypto'
import { Fault } from '../../core/fault.ts'
import type { MediaId } from '../../core/media-id.ts'
import type { ReceivedBlob } from '../blobs.ts'
import type { FileWriterThread } from './start-file-writer-thread.ts'

/** Files up to this size are held in memory until they are committed. Bytes. */
const smallSize = 65_536

/** Limit for all held files together. Further files are written to `tmp/`, as large ones are. Bytes. */
const maxHeld = 16 * 1024 * 1024

/**
 * Holds small files in memory until they are committed. A temporary file would cost each of them three more calls
 * through libuv's thread pool.
 */
export interface SmallBlobs {
  /** Null, before reading, if `atMost` bytes cannot be held. Throws Fault `file-too-large`. */
  receive(source: AsyncIterable<Uint8Array>, limit: number, atMost: number): Promise<ReceivedBlob> | null
  /** For a source of unknown size: holds a small one, and passes a large one to `spill` from its first byte. */
  receiveOrSpill(
    source: AsyncIterable<Uint8Array>,
    limit: number,
    spill: (source: AsyncIterable<Uint8Array>) => Promise<ReceivedBlob>,
  ): Promise<ReceivedBlob>
  /** The bytes of a held file; null for any other handle. */
  bytes(handle: string): Uint8Array<ArrayBuffer> | null
  /** Commits a held file; durable when it resolves. */
  commit(handle: string, id: MediaId): Promise<void>
  discard(handle: string): void
}

export function createSmallBlobs(thread: Pick<FileWriterThread, 'commit'>): SmallBlobs {
  const held = new Map<string, Uint8Array<ArrayBuffer>>()
  let total = 0

  function take(handle: string): Uint8Array<ArrayBuffer> {
    const bytes = held.get(handle)
    if (bytes === undefined) throw new Error('these bytes are not held')
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
    const bytes = new Uint8Array(size === reserved ? room.buffer : room.buffer.transfer(size))
    total -= reserved - size
    return hold(bytes)
  }

  /** `total` includes the bytes already. */
  function hold(bytes: Uint8Array<ArrayBuffer>): ReceivedBlob {
    const handle = randomUUID()
    held.set(handle, bytes)
    return { handle, size: bytes.byteLength, sha256: hash('sha256', bytes, 'buffer'), head: bytes }
  }

  async function receiveOrSpill(
    source: AsyncIterable<Uint8Array>,
    limit: number,
    spill: (source: AsyncIterable<Uint8Array>) => Promise<ReceivedBlob>,
  ): Promise<ReceivedBlob> {
    const chunks = source[Symbol.asyncIterator]()
    const start: Uint8Array<ArrayBuffer>[] = []
    let size = 0
    let counted = 0
    try {
      for (;;) {
        const { done, value } = await chunks.next()
        if (done) break
        size += value.byteLength
        if (size > limit)
          throw new Fault('file-too-large', `The file is larger than the limit of ${limit} bytes.`)
        if (size > smallSize || total + value.byteLength > maxHeld) {
          total -= counted
          counted = 0
          return await spill(resumed([...start, value], chunks))
        }
        // A copy: the source reuses the memory of a chunk for the next one.
        start.push(new Uint8Array(value))
        total += value.byteLength
        counted = size
      }
    } catch (error) {
      total -= counted
      await chunks.return?.()
      throw error
    }
    return hold(joined(start, size))
  }

  return {
    receive(source, limit, atMost) {
      if (atMost > smallSize || total + atMost > maxHeld) return null
      return receive(source, limit, Buffer.allocUnsafeSlow(atMost))
    },
    receiveOrSpill,
    bytes: (handle) => held.get(handle) ?? null,
    async commit(handle, id) {
      const bytes = take(handle)
      const size = bytes.byteLength
      try {
        await thread.commit(id, bytes)
      } finally {
        total -= size
      }
    },
    discard(handle) {
      total -= take(handle).byteLength
    },
  }
}

function joined(chunks: readonly Uint8Array<ArrayBuffer>[], size: number): Uint8Array<ArrayBuffer> {
  const [only, ...more] = chunks
  if (only && more.length === 0) return only
  const bytes = new Uint8Array(size)
  let filled = 0
  for (const chunk of chunks) {
    bytes.set(chunk, filled)
    filled += chunk.byteLength
  }
  return bytes
}

/** The chunks that were read already, then the rest. */
async function* resumed(
  start: readonly Uint8Array[],
  rest: AsyncIterator<Uint8Array>,
): AsyncGenerator<Uint8Array, void> {
  try {
    yield* start
    for (;;) {
      const { done, value } = await rest.next()
      if (done) return
      yield value
    }
  } finally {
    await rest.return?.()
  }
}
