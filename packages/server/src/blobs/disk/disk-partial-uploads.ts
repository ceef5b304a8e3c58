import { constants } from 'node:fs'
import { type FileHandle, readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { Fault } from '../../core/fault.ts'
import type { MediaId } from '../../core/media-id.ts'
import { isUploadId, type UploadId } from '../../core/upload-id.ts'
import { headLength, PartialUploadLost, type PartialUploadStore } from '../blobs.ts'
import type { DirectorySync } from './directory-sync.ts'
import { entryTypeAt } from './entry-type.ts'
import { asStorageFault, type Files, unlinkIfThere, writeWhole } from './files.ts'
import { createIncrementalSync, type IncrementalSync } from './incremental-sync.ts'
import { createPartialUploadHashes } from './partial-upload-hashes.ts'
import type { Shards } from './shards.ts'

const { O_RDWR, O_CREAT, O_NOFOLLOW, O_NONBLOCK } = constants
const flags = O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK

/** Parts as files: `uploads/<id>`, as long as what has arrived. */
export function createDiskPartialUploads(options: {
  /** The directory `uploads/`. */
  readonly pieces: string
  readonly shards: Shards
  readonly files: Files
  readonly sync: DirectorySync
}): PartialUploadStore {
  const { pieces, shards, files, sync } = options
  const hashes = createPartialUploadHashes()
  const pathOf = (id: UploadId) => join(pieces, id)

  /** Whatever is in doubt about a part, it is not gone on with. */
  async function lose(id: UploadId, why: string, cause?: unknown): Promise<PartialUploadLost> {
    hashes.forget(id)
    await files.unlink(pathOf(id)).catch(() => undefined)
    return new PartialUploadLost(why, { cause: asStorageFault(cause) })
  }

  /** Opens the part, which must have `size` bytes or more, and makes it if that is none. */
  async function open(id: UploadId, size: number): Promise<{ file: FileHandle; found: number }> {
    const file = await files.open(pathOf(id), flags, 0o600)
    try {
      const status = await file.stat()
      if (!status.isFile() || status.size < size) throw await lose(id, 'bytes of a part are missing')
      return { file, found: status.size }
    } catch (error) {
      await file.close()
      throw error
    }
  }

  async function write(
    file: FileHandle,
    id: UploadId,
    { offset, source, limit }: Parameters<PartialUploadStore['append']>[1],
    ahead: IncrementalSync,
  ): Promise<{ size: number; failure: unknown }> {
    const hash = hashes.at(id, offset)
    let size = offset
    let failure: unknown = null
    try {
      for await (const chunk of source) {
        if (size + chunk.byteLength > offset + limit)
          throw new Fault('file-too-large', `No more than ${limit} bytes are expected here.`)
        // The disk works while this thread hashes.
        const written = writeWhole(file, chunk, size).catch((error: unknown) => {
          throw new WriteFailed(error)
        })
        hash?.update(chunk)
        await written
        size += chunk.byteLength
        ahead.wrote(chunk.byteLength)
      }
    } catch (error) {
      if (error instanceof Fault && error.code === 'file-too-large') throw error
      failure = error
      if (error instanceof WriteFailed) {
        failure = asStorageFault(error.cause)
        if (!(failure instanceof Fault)) throw await lose(id, 'a part could not be written', error.cause)
        return { size, failure }
      }
    }
    if (hash) hashes.store(id, size, hash)
    return { size, failure }
  }

  async function reclaim(id: UploadId, mediaId: MediaId): Promise<void> {
    if (entryTypeAt(files, pathOf(id)) !== 'nothing') return
    const shard = shards.directory(mediaId)
    if (!(await shards.exists(shard))) return
    const kept = join(shard, mediaId)
    if (entryTypeAt(files, kept) !== 'file') return
    await files.rename(kept, pathOf(id))
    await sync(pieces)
  }

  return {
    async append(id, piece) {
      const { file, found } = await open(id, piece.offset)
      const ahead = createIncrementalSync(file)
      try {
        if (found > piece.offset) await file.truncate(piece.offset)
        const appended = await write(file, id, piece, ahead)
        try {
          await ahead.settled()
          await file.sync()
          if (piece.offset === 0) await sync(pieces)
        } catch (error) {
          throw await lose(id, 'a part could not be synced', error)
        }
        return appended
      } finally {
        await file.close()
      }
    },

    async complete(id, size) {
      const { file, found } = await open(id, size)
      try {
        if (found > size) throw await lose(id, 'a part is longer than its whole')
        const head = Buffer.alloc(Math.min(size, headLength))
        await file.read(head, 0, head.length, 0)
        return { handle: join('uploads', id), size, sha256: await hashes.whole(id, file, size), head }
      } finally {
        await file.close()
      }
    },

    reclaim,

    async remove(id) {
      hashes.forget(id)
      await unlinkIfThere(files, pathOf(id))
    },

    async recover(parts) {
      const wanted = new Map(parts.map((part) => [part.id, part]))
      for (const { id, mediaId } of parts) await reclaim(id, mediaId)
      const missing = new Map(parts.map(({ id, offset }) => [id, offset]))
      const short = new Map<UploadId, number>()
      for (const name of await readdir(pieces)) {
        const part = isUploadId(name) ? wanted.get(name) : undefined
        if (!part || entryTypeAt(files, join(pieces, name)) !== 'file') {
          await rm(join(pieces, name), { recursive: true, force: true })
          continue
        }
        const { file, found } = await open(part.id, 0)
        try {
          if (found > part.offset) await file.truncate(part.offset)
          if (found < part.offset) short.set(part.id, found)
        } finally {
          await file.close()
        }
        missing.delete(part.id)
      }
      for (const [id, offset] of missing) if (offset > 0) short.set(id, 0)
      return short
    },
  }
}

/** The disk failed under a write, not the source that was written. */
class WriteFailed extends Error {
  constructor(cause: unknown) {
    super('a write failed', { cause })
  }
}
