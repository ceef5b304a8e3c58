import { createHash } from 'node:crypto'
import { constants, readdirSync } from 'node:fs'
import { type FileHandle, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { chunkTooLarge, Fault } from '../../../core/faults.ts'
import { type ItemId, isUploadId, requireUploadId, type UploadId } from '../../../core/ids.ts'
import {
  type Appended,
  type BlobRecovery,
  headLength,
  type PartialChunk,
  type PartialUpload,
  PartialUploadHashes,
  PartialUploadLost,
  type PartialUploadStore,
} from '../blobs.ts'
import type { ReceivedBlob } from '../received-file.ts'
import type { Shards } from './blobs-directory.ts'
import {
  asStorageFault,
  type DirectorySync,
  entryTypeAt,
  type Files,
  unlinkIfThere,
  writeWhole,
} from './files.ts'
import { readWhole } from './stored-files.ts'

const { O_RDWR, O_CREAT, O_NOFOLLOW, O_NONBLOCK } = constants
const flags = O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK

/** Bytes for each read: hashing them blocks the thread for half a millisecond. */
const readLength = 1024 * 1024

interface DiskParts {
  /** The directory `uploads/`. */
  readonly directory: string
  readonly shards: Shards
  readonly files: Files
  readonly sync: DirectorySync
}

/** Stores partial uploads as files `uploads/<id>`. On any inconsistency, it discards the file. */
export class DiskPartialUploads implements PartialUploadStore, Pick<BlobRecovery, 'matchUploads'> {
  readonly #parts: DiskParts
  readonly #hashes = new PartialUploadHashes()

  constructor(parts: DiskParts) {
    this.#parts = parts
  }

  async append({ id }: Pick<PartialUpload, 'id'>, chunk: PartialChunk): Promise<Appended> {
    const { file, found } = await this.#open(id, chunk.offset).catch((error: unknown) => {
      throw asStorageFault(error)
    })
    const incremental = new IncrementalSync(file)
    try {
      // Bytes beyond the offset are of a chunk that was not recorded.
      if (found > chunk.offset) await file.truncate(chunk.offset)
      const { isBroken = false, ...appended } = await this.#write(file, id, chunk, incremental)
      try {
        await incremental.synced()
        if (isBroken) return { ...appended, isRecorded: false }
        await file.sync()
        if (chunk.offset === 0) await this.#parts.sync(this.#parts.directory)
      } catch (error) {
        throw await this.#discard(id, 'a partial upload could not be synced', error)
      }
      return { ...appended, isRecorded: false }
    } finally {
      await file.close()
    }
  }

  async complete(id: UploadId, size: number, itemId: ItemId): Promise<ReceivedBlob> {
    const file = await this.#openWhole(id, size)
    try {
      const head = Buffer.alloc(Math.min(size, headLength))
      await file.read(head, 0, head.length, 0)
      const sha256 = await this.#hashes.digest(id, size, () => hashFile(file, size))
      return { id: itemId, handle: join('uploads', id), size, sha256, head }
    } finally {
      await file.close()
    }
  }

  async read(id: UploadId, size: number): Promise<Uint8Array<ArrayBuffer>> {
    const file = await this.#openWhole(id, size)
    try {
      const bytes = new Uint8Array(size)
      await readWhole(file.fd, bytes, 0)
      this.#hashes.forget(id)
      return bytes
    } finally {
      await file.close()
    }
  }

  async reclaim(id: UploadId, itemId: ItemId): Promise<void> {
    const { directory, shards, files, sync } = this.#parts
    const path = this.#pathOf(id)
    if (entryTypeAt(files, path) !== 'nothing') return
    const shard = shards.directory(itemId)
    if (!(await shards.exists(shard))) return
    const committed = join(shard, itemId)
    if (entryTypeAt(files, committed) !== 'file') return
    await files.rename(committed, path)
    await sync(directory)
  }

  async remove(id: UploadId): Promise<void> {
    this.#hashes.forget(id)
    await unlinkIfThere(this.#parts.files, this.#pathOf(id))
  }

  async matchUploads(uploads: Parameters<BlobRecovery['matchUploads']>[0]): Promise<Map<UploadId, number>> {
    const { directory, files } = this.#parts
    const wanted = new Map(uploads.map((upload) => [upload.id, upload]))
    for (const { id, itemId, isItem } of uploads) if (isItem !== true) await this.reclaim(id, itemId)
    const missing = new Map(uploads.map(({ id, offset }) => [id, offset]))
    const short = new Map<UploadId, number>()
    for (const name of readdirSync(directory)) {
      // What no upload names is removed.
      const upload = isUploadId(name) ? wanted.get(name) : undefined
      if (!upload || entryTypeAt(files, join(directory, name)) !== 'file') {
        await rm(join(directory, name), { recursive: true, force: true })
        continue
      }
      // A file that is too long is shortened, and one that is too short is reported.
      const { file, found } = await this.#open(upload.id, 0)
      try {
        if (found > upload.offset) await file.truncate(upload.offset)
        if (found < upload.offset) short.set(upload.id, found)
      } finally {
        await file.close()
      }
      missing.delete(upload.id)
    }
    for (const [id, offset] of missing) if (offset > 0) short.set(id, 0)
    return short
  }

  #pathOf(id: UploadId): string {
    return join(this.#parts.directory, requireUploadId(id))
  }

  /** Removes the file. Returns the error to throw. */
  async #discard(id: UploadId, why: string, cause?: unknown): Promise<PartialUploadLost> {
    this.#hashes.forget(id)
    await this.#parts.files.unlink(this.#pathOf(id)).catch(() => undefined)
    return new PartialUploadLost(why, { cause: asStorageFault(cause) })
  }

  /** Opens the file, which must have at least `size` bytes; creates it if `size` is 0. */
  async #open(id: UploadId, size: number): Promise<{ file: FileHandle; found: number }> {
    const file = await this.#parts.files.open(this.#pathOf(id), flags, 0o600)
    try {
      const status = await file.stat()
      if (!status.isFile() || status.size < size)
        throw await this.#discard(id, 'bytes of a partial upload are missing')
      return { file, found: status.size }
    } catch (error) {
      await file.close()
      throw error
    }
  }

  /** Opens the file, which must have `size` bytes. */
  async #openWhole(id: UploadId, size: number): Promise<FileHandle> {
    const { file, found } = await this.#open(id, size)
    if (found === size) return file
    const error = await this.#discard(id, 'a partial upload is longer than its size')
    await file.close()
    throw error
  }

  /** Writes and hashes the bytes of the chunk. `isBroken`: a write has failed, so that only what was there before counts. */
  async #write(
    file: FileHandle,
    id: UploadId,
    { offset, source, limit, isAtomic }: PartialChunk,
    incremental: IncrementalSync,
  ): Promise<{ size: number; failure: unknown; isBroken?: boolean }> {
    const hash = this.#hashes.take(id, offset)
    let size = offset
    let failure: unknown = null
    try {
      for await (const chunk of source) {
        if (size + chunk.byteLength > offset + limit) throw chunkTooLarge(limit)
        // Hashing overlaps the write.
        const written = writeWhole(file, chunk, size).catch((error: unknown) => {
          throw new WriteFailed(error)
        })
        hash?.update(chunk)
        await written
        size += chunk.byteLength
        incremental.wrote(chunk.byteLength)
      }
    } catch (error) {
      if (error instanceof Fault && error.code === 'file-too-large') throw error
      failure = error
      if (error instanceof WriteFailed) {
        failure = asStorageFault(error.cause)
        // On a full disk, the bytes before count. After another error, only those that were synced before this chunk do.
        return failure instanceof Fault ? { size, failure } : { size: offset, failure, isBroken: true }
      }
    }
    // Bytes that do not count must have no hash: another process may store others of the same length, which this one would continue.
    if (hash && !(isAtomic && failure !== null)) this.#hashes.store(id, size, hash)
    return { size, failure }
  }
}

/** Distinguishes a failed write from a failed source. */
class WriteFailed extends Error {
  constructor(cause: unknown) {
    super('a write failed', { cause })
  }
}

async function hashFile(file: FileHandle, size: number): Promise<Uint8Array> {
  const hash = createHash('sha256')
  const buffer = Buffer.allocUnsafeSlow(Math.max(1, Math.min(size, readLength)))
  for (let position = 0; position < size; ) {
    const { bytesRead } = await file.read(buffer, 0, buffer.length, position)
    if (bytesRead === 0) throw new PartialUploadLost('a partial upload ended before its size')
    hash.update(buffer.subarray(0, bytesRead))
    position += bytesRead
  }
  return hash.digest()
}

/** Bytes between two syncs. */
const interval = 2 * 1024 * 1024

/**
 * Syncs a file while more of it is received, so that the final sync is short. The caller must still sync at the end, and
 * must treat an error here as final: the kernel reports a failed write only once.
 */
class IncrementalSync {
  readonly #file: FileHandle
  #unsynced = 0
  #running: Promise<void> | null = null
  #failed: { readonly error: unknown } | null = null

  constructor(file: FileHandle) {
    this.#file = file
  }

  /** Call it after each write, with its number of bytes. Starts a sync if enough bytes are written and none is running. */
  wrote(bytes: number): void {
    this.#unsynced += bytes
    if (this.#unsynced < interval || this.#running !== null || this.#failed !== null) return
    this.#unsynced = 0
    this.#running = this.#sync()
  }

  async #sync(): Promise<void> {
    try {
      await this.#file.datasync()
    } catch (error) {
      this.#failed = { error }
    }
    this.#running = null
  }

  /** Waits for the sync that is running. Rejects if it or an earlier one has failed. */
  async synced(): Promise<void> {
    await this.#running
    if (this.#failed !== null) throw this.#failed.error
  }
}
