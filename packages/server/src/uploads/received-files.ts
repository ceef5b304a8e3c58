import { hash } from 'node:crypto'
import { fileTooLarge } from '../core/faults.ts'
import type { ItemId, UploadId } from '../core/ids.ts'
import type { BlobStore } from '../storage/blobs/blobs.ts'
import { type ReceivedBytes, type ReceivedFile, received } from '../storage/blobs/received-file.ts'

/** Receives the files of one request. */
export interface FileReceiver {
  /**
   * Reads the bytes of the item `id` from the source to its end. `atMost` is their size, null if unknown. Throws Fault
   * `file-too-large` above `limit` bytes and `storage-full`; leaves nothing behind when it throws.
   */
  receive(
    id: ItemId,
    source: AsyncIterable<Uint8Array>,
    limit: number,
    atMost: number | null,
  ): Promise<ReceivedFile>
  /** Copies a file that has arrived completely. Null if it is not small, or there is no memory. Throws Fault `file-too-large` above `limit` bytes. */
  receiveWhole(bytes: Uint8Array, limit: number): ReceivedBytes | null
  /** Reserves memory for a file of `size` bytes that the caller receives. False if it is not small, or there is no memory. */
  reserve(size: number): boolean
  /** A complete resumable upload of `size` bytes, for the item `itemId`. Throws PartialUploadLost. */
  complete(id: UploadId, size: number, itemId: ItemId): Promise<ReceivedFile>
  /** The bytes in memory do not count any more. Call it when the request has ended. */
  release(): void
}

/** Limit for the bytes in memory of all requests. Further files are received by the blob store. Bytes. */
const maxHeld = 16 * 1024 * 1024

/** Of SHA-256. Bytes. */
const digestLength = 32

interface ReceiverParts {
  readonly blobs: Pick<BlobStore, 'receive' | 'partialUploads'>
  readonly inlineSize: number
}

/** Files of up to `inlineSize` bytes are received into memory, larger ones into the blob store; all of them if it is 0. */
export function createFileReceivers(parts: ReceiverParts): () => FileReceiver {
  const memory = { held: 0 }
  return () => new InlineReceiver(parts, memory)
}

class InlineReceiver implements FileReceiver {
  readonly #blobs: ReceiverParts['blobs']
  readonly #inlineSize: number
  /** The bytes in memory of all requests, and those of this one. */
  readonly #memory: { held: number }
  #mine = 0
  readonly #bytes = new SharedMemory()
  readonly #digests = new SharedMemory()

  constructor({ blobs, inlineSize }: ReceiverParts, memory: { held: number }) {
    this.#blobs = blobs
    this.#inlineSize = inlineSize
    this.#memory = memory
  }

  receive(
    id: ItemId,
    source: AsyncIterable<Uint8Array>,
    limit: number,
    atMost: number | null,
  ): Promise<ReceivedFile> {
    return this.#fits(atMost ?? 0, 0)
      ? this.#receiveSmall(id, source, limit)
      : this.#blobs.receive(id, source, limit)
  }

  receiveWhole(bytes: Uint8Array, limit: number): ReceivedBytes | null {
    const size = bytes.byteLength
    if (size > limit) throw fileTooLarge(limit)
    if (!this.#fits(size, size)) return null
    const before = this.#bytes.length
    const copy = this.#bytes.allocate(size)
    this.#count(this.#bytes.length - before)
    copy.set(bytes)
    const sha256 = this.#digests.allocate(digestLength)
    // As a string, because Node would allocate a buffer for each digest.
    sha256.write(hash('sha256', copy, 'binary'), 'binary')
    return { bytes: copy, size, sha256, head: copy }
  }

  reserve(size: number): boolean {
    if (!this.#fits(size, size)) return false
    this.#count(size)
    return true
  }

  async complete(id: UploadId, size: number, itemId: ItemId): Promise<ReceivedFile> {
    if (!this.#fits(size, size)) return this.#blobs.partialUploads.complete(id, size, itemId)
    this.#count(size)
    return received(await this.#blobs.partialUploads.read(id, size))
  }

  release(): void {
    this.#count(-this.#mine)
  }

  #count(bytes: number): void {
    this.#mine += bytes
    this.#memory.held += bytes
  }

  /** Whether a file with this size and `more` bytes that do not count yet fits into memory. */
  #fits(size: number, more: number): boolean {
    return this.#inlineSize > 0 && size <= this.#inlineSize && this.#memory.held + more <= maxHeld
  }

  /** Passes a file that does not fit to the blob store, from its first byte. */
  async #receiveSmall(id: ItemId, source: AsyncIterable<Uint8Array>, limit: number): Promise<ReceivedFile> {
    const chunks = source[Symbol.asyncIterator]()
    const start: Uint8Array<ArrayBuffer>[] = []
    let size = 0
    try {
      for (;;) {
        const { done, value } = await chunks.next()
        if (done) return received(joined(start, size))
        const { byteLength } = value
        if (size + byteLength > limit) throw fileTooLarge(limit)
        if (!this.#fits(size + byteLength, byteLength)) {
          this.#count(-size)
          size = 0
          return await this.#blobs.receive(id, resumed([...start, value], chunks), limit)
        }
        // A copy: the source reuses the memory of a chunk for the next one.
        start.push(new Uint8Array(value))
        size += byteLength
        this.#count(byteLength)
      }
    } catch (error) {
      this.#count(-size)
      await chunks.return?.()
      throw error
    }
  }
}

/** Takes over the buffer of the bytes if they fill it, and copies them otherwise, because the commit needs a buffer of its own. */
export function receivedBytes(bytes: Uint8Array): ReceivedBytes {
  const { buffer, byteLength } = bytes
  if (buffer instanceof ArrayBuffer && buffer.byteLength === byteLength) return received(Buffer.from(buffer))
  const copy = Buffer.allocUnsafeSlow(byteLength)
  copy.set(bytes)
  return received(copy)
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
export async function* resumed(
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

/** The longest buffer that several small files share. Bytes. */
const maxShared = 65_536

/**
 * Memory for the small files of a request. Passing a buffer to the writer thread takes as long as receiving a small file, so small files
 * share buffers. The unused part of a buffer is at most as long as what was allocated before it.
 */
export class SharedMemory {
  /** Bytes of all buffers. */
  length = 0
  /** Not shared by instances: the writer thread takes over even the buffer of an empty file. */
  #buffer: Buffer<ArrayBuffer> = Buffer.allocUnsafeSlow(0)
  #unused = 0
  #allocated = 0

  allocate(size: number): Buffer<ArrayBuffer> {
    if (size > this.#unused) {
      const length = Math.max(size, Math.min(this.#allocated, maxShared))
      const added = Buffer.allocUnsafeSlow(length)
      this.length += length
      // The previous buffer stays in use if it has more unused memory.
      if (length - size < this.#unused) return added.subarray(0, size)
      this.#buffer = added
      this.#unused = length
    }
    const start = this.#buffer.length - this.#unused
    this.#unused -= size
    this.#allocated += size
    return this.#buffer.subarray(start, start + size)
  }
}
