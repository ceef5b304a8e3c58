import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { errorCode } from '../../core/error-code.ts'
import { Fault } from '../../core/fault.ts'
import { type ItemId, requireItemId, shardOf } from '../../core/media-id.ts'
import type { VariantKey } from '../../core/variant.ts'
import { isFull, isIoError, isShortage } from '../../sqlite/result-codes.ts'
import type { VariantStore } from '../blobs.ts'
import { openMemoryBlob } from '../memory-blob.ts'
import { entryTypeAt, ForeignEntry } from './entry-type.ts'
import type { FileReaders } from './file-readers.ts'
import { type Files, unlinkIfThere } from './files.ts'
import { openStoredFile } from './open-stored-file.ts'
import { isStored } from './stored-file.ts'
import type { VariantOutput } from './variant-database.ts'
import type { VariantRequests } from './variant-requests.ts'

/**
 * Stores small variants in `variants.db`, so that serving a page of thumbnails opens no files; all others as files,
 * `<first two characters of the id>/<id>.<key>` in `root`, which are written under temporary names first. A variant that
 * was stored before the limit changed is read where it is. Creates database and directories on demand, so an operator can
 * remove all variants at any time.
 */
export function createDiskVariants(parts: {
  readonly root: string
  /** The root of the blobs, which contains the pictures. */
  readonly pictures: string
  /** A path for a new temporary file. */
  readonly newTemporaryPath: () => string
  readonly files: Files
  readonly database: Pick<VariantRequests, 'run'>
  /** The threads of a server that open files; null in a command. */
  readonly readers: Pick<FileReaders, 'open'> | null
  /** Bytes of the largest variant that is stored in `variants.db`. */
  readonly inlineSize: number
}): VariantStore {
  const { root, pictures, newTemporaryPath, files, database, readers, inlineSize } = parts
  const nameOf = (id: ItemId, key: VariantKey) => `${requireItemId(id)}.${key}`
  const directoryOf = (id: ItemId) => join(root, shardOf(id))
  const pathOf = (id: ItemId, key: VariantKey) => join(directoryOf(id), nameOf(id, key))

  /** Throws ForeignEntry if the shard, or the root, is not a directory. */
  async function exists(shard: string): Promise<boolean> {
    for (const path of [root, shard]) {
      const found = entryTypeAt(files, path)
      if (found === 'nothing') return false
      if (found !== 'directory') throw new ForeignEntry(`${path} is not a directory`)
    }
    return true
  }

  async function ensure(shard: string): Promise<void> {
    if (await exists(shard)) return
    for (const path of [root, shard]) await files.mkdir(path, 0o700).catch(ignoreExisting)
  }

  async function storeFile(id: ItemId, key: VariantKey, bytes: Uint8Array): Promise<void> {
    const path = newTemporaryPath()
    try {
      const file = await files.create(path)
      try {
        await file.write(bytes)
        // Otherwise a power failure could leave an empty file under the name. Losing the name is harmless.
        await file.sync()
      } finally {
        await file.close()
      }
      await ensure(directoryOf(id))
      await files.rename(path, pathOf(id, key))
    } catch (error) {
      await files.unlink(path).catch(() => undefined)
      throw error
    }
  }

  return {
    async store(id, key, bytes) {
      if (bytes.byteLength > inlineSize) return storeFile(id, key, bytes)
      await database.run({ kind: 'store', name: nameOf(id, key), bytes })
    },

    async open(id, key, { pictureSize, wholeUpTo = 0 } = {}) {
      const [name, shard] = [nameOf(id, key), shardOf(id)]
      const required =
        pictureSize === undefined ? null : { root: pictures, shard, name: id, size: pictureSize }
      const bytes = await database.run({ kind: 'read', name, required }).catch(nullIfUnreadable)
      if (bytes) return openMemoryBlob(bytes)
      if (readers) return readers.open({ root, shard, name, hasIdentity: false, wholeUpTo, required })
      if (required !== null && !isStored(required)) return null
      return openStoredFile(pathOf(id, key), () => exists(directoryOf(id)))
    },

    async remove(id) {
      const directory = directoryOf(id)
      await database.run({ kind: 'remove', id })
      if (!(await exists(directory))) return
      for (const name of await readdir(directory))
        if (name.startsWith(`${id}.`)) await unlinkIfThere(files, join(directory, name))
    },
  }
}

/** Variants in a database that the disk cannot read are rendered again. */
function nullIfUnreadable(error: unknown): VariantOutput {
  if (isFull(error) || isIoError(error)) return null
  if (isShortage(error))
    throw new Fault('overloaded', 'The service has no memory or file descriptor left.', { cause: error })
  throw error
}

function ignoreExisting(error: unknown): void {
  if (errorCode(error) !== 'EEXIST') throw error
}
