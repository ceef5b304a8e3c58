import { randomUUID } from 'node:crypto'
import { join } from 'node:path'
import { errorCode } from '../../core/error-code.ts'
import { type MediaId, shardOf } from '../../core/media-id.ts'
import { type Variant, variantKey, variants } from '../../core/variant.ts'
import type { VariantStore } from '../blobs.ts'
import { entryTypeAt, ForeignEntry } from './entry-type.ts'
import { type Files, unlinkIfThere } from './files.ts'
import { openStoredFile } from './open-stored-file.ts'

/**
 * Stores variants as files, `<first two characters of the id>/<id>.<key>` in `root`; writes them in `temporary` first.
 * Creates directories on demand, so an operator can remove all variants at any time.
 */
export function createDiskVariants(parts: {
  readonly root: string
  readonly temporary: string
  readonly files: Files
}): VariantStore {
  const { root, temporary, files } = parts
  const directoryOf = (id: MediaId) => join(root, shardOf(id))
  const pathOf = (id: MediaId, variant: Variant) => join(directoryOf(id), `${id}.${variantKey(variant)}`)

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

  return {
    async store(id, variant, bytes) {
      const path = join(temporary, randomUUID())
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
        await files.rename(path, pathOf(id, variant))
      } catch (error) {
        await files.unlink(path).catch(() => undefined)
        throw error
      }
    },

    open: (id, variant) => openStoredFile(pathOf(id, variant), () => exists(directoryOf(id))),

    async remove(id) {
      if (!(await exists(directoryOf(id)))) return
      for (const variant of variants) await unlinkIfThere(files, pathOf(id, variant))
    },
  }
}

function ignoreExisting(error: unknown): void {
  if (errorCode(error) !== 'EEXIST') throw error
}
