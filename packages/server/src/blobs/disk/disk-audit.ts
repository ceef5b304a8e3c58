import { randomBytes } from 'node:crypto'
import type { Dirent } from 'node:fs'
import { readdir, realpath } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { base32Alphabet } from '../../core/base32.ts'
import { errorCode } from '../../core/error-code.ts'
import { isMediaId } from '../../core/media-id.ts'
import { isUploadId } from '../../core/upload-id.ts'
import { variantKey, variants } from '../../core/variant.ts'
import type { BlobAudit, BlobEntry } from '../audit.ts'
import { identityName } from './blobs-directory.ts'
import { createDirectorySync } from './directory-sync.ts'
import { entryTypeAt } from './entry-type.ts'
import { type Files, nodeFiles } from './files.ts'

const endings = variants.map((variant) => `.${variantKey(variant)}`)
const shardName = new RegExp(`^[${base32Alphabet}]{2}$`)

/** Looks through the directories of disk-blobs.ts, never through a link; what is set aside goes to `lost+found/`. */
export async function openDiskAudit(options: { readonly directory: string }): Promise<BlobAudit> {
  const files: Files = nodeFiles
  const directory = await realpath(options.directory)
  const sync = createDirectorySync(files)
  const at = (path: string) => join(directory, path)

  async function entries(path: string): Promise<Dirent[]> {
    try {
      return await readdir(at(path), { withFileTypes: true })
    } catch (error) {
      if (errorCode(error) === 'ENOENT') return []
      throw error
    }
  }

  /** Null when it is no regular file, or has gone meanwhile. */
  async function sizeOf(path: string): Promise<number | null> {
    const status = files.lstat(at(path))
    return status?.isFile() ? status.size : null
  }

  /** The files of one kind, in directories named by the first two characters of their ids, with what ends their names. */
  async function* sharded(
    root: string,
    kind: 'kept' | 'variant',
    endings: readonly string[],
  ): AsyncGenerator<BlobEntry> {
    const stands = entryTypeAt(files, at(root))
    if (stands === 'nothing') return
    if (stands !== 'directory') return yield { kind: 'foreign', path: root }
    for (const shard of await entries(root)) {
      if (shard.name === identityName && shard.isFile()) continue
      if (!shard.isDirectory() || !shardName.test(shard.name)) {
        yield { kind: 'foreign', path: join(root, shard.name) }
        continue
      }
      for (const entry of await entries(join(root, shard.name))) {
        const path = join(root, shard.name, entry.name)
        const ending = endings.find((one) => entry.name.endsWith(one))
        const id = entry.name.slice(0, entry.name.length - (ending ?? '').length)
        if (!entry.isFile() || ending === undefined || !isMediaId(id) || !id.startsWith(shard.name)) {
          yield { kind: 'foreign', path }
          continue
        }
        const size = await sizeOf(path)
        if (size !== null) yield { kind, path, id, size }
      }
    }
  }

  async function ensureAside(): Promise<string> {
    const aside = at('lost+found')
    try {
      await files.mkdir(aside, 0o700)
    } catch (error) {
      if (errorCode(error) !== 'EEXIST') throw error
    }
    if (entryTypeAt(files, aside) !== 'directory') throw new Error(`${aside} must be a directory`)
    await sync(directory)
    return aside
  }

  return {
    async *entries() {
      yield* sharded('blobs', 'kept', [''])
      yield* sharded('variants', 'variant', endings)
      for (const { name } of await entries('tmp')) {
        const path = join('tmp', name)
        yield { kind: 'temporary', path, size: (await sizeOf(path)) ?? 0 }
      }
      for (const entry of await entries('uploads')) {
        const path = join('uploads', entry.name)
        if (!entry.isFile() || !isUploadId(entry.name)) yield { kind: 'foreign', path }
        else yield { kind: 'part', path, id: entry.name, size: (await sizeOf(path)) ?? 0 }
      }
    },

    exists: async ({ path }) => entryTypeAt(files, at(path)) !== 'nothing',

    async quarantine(found) {
      const aside = await ensureAside()
      // Random, so that two checks at once, or a second find under one name, never meet.
      const name = `${found.kind}.${basename(found.path)}.${randomBytes(4).toString('hex')}`
      try {
        await files.rename(at(found.path), join(aside, name))
      } catch (error) {
        if (errorCode(error) === 'ENOENT') return null
        throw error
      }
      await sync(aside)
      await sync(join(at(found.path), '..'))
      return join('lost+found', name)
    },
  }
}
