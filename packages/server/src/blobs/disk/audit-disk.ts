import { randomBytes } from 'node:crypto'
import type { Dirent } from 'node:fs'
import { readdir, realpath } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { base32Alphabet } from '../../core/base32.ts'
import { isMediaId } from '../../core/media-id.ts'
import { isUploadId } from '../../core/upload-id.ts'
import type { BlobAudit, Found } from '../audit.ts'
import { createDirectorySync } from './directory-sync.ts'
import { type Files, nodeFiles, systemCode } from './files.ts'
import { standing } from './shards.ts'

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
      if (systemCode(error) === 'ENOENT') return []
      throw error
    }
  }

  /** Null when it is no regular file, or has gone meanwhile. */
  async function sizeOf(path: string): Promise<number | null> {
    try {
      const status = await files.lstat(at(path))
      return status.isFile() ? Number(status.size) : null
    } catch (error) {
      if (systemCode(error) === 'ENOENT') return null
      throw error
    }
  }

  async function* shard(name: string): AsyncGenerator<Found> {
    for (const entry of await entries(join('blobs', name))) {
      const path = join('blobs', name, entry.name)
      const id = entry.name
      if (!entry.isFile() || !isMediaId(id) || !id.startsWith(name)) {
        yield { kind: 'foreign', path }
        continue
      }
      const size = await sizeOf(path)
      if (size !== null) yield { kind: 'kept', path, id, size }
    }
  }

  async function ensureAside(): Promise<string> {
    const aside = at('lost+found')
    try {
      await files.mkdir(aside, 0o700)
    } catch (error) {
      if (systemCode(error) !== 'EEXIST') throw error
    }
    if ((await standing(files, aside)) !== 'directory') throw new Error(`${aside} must be a directory`)
    await sync(directory)
    return aside
  }

  return {
    async *found() {
      for (const entry of await entries('blobs')) {
        if (entry.isDirectory() && shardName.test(entry.name)) yield* shard(entry.name)
        else yield { kind: 'foreign', path: join('blobs', entry.name) }
      }
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

    stands: async ({ path }) => (await standing(files, at(path))) !== 'nothing',

    async setAside(found) {
      const aside = await ensureAside()
      // Random, so that two checks at once, or a second find under one name, never meet.
      const name = `${found.kind}.${basename(found.path)}.${randomBytes(4).toString('hex')}`
      try {
        await files.rename(at(found.path), join(aside, name))
      } catch (error) {
        if (systemCode(error) === 'ENOENT') return null
        throw error
      }
      await sync(aside)
      await sync(join(at(found.path), '..'))
      return join('lost+found', name)
    },
  }
}
