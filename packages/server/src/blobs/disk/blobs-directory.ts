import { lstatSync, mkdirSync, readdirSync, readFileSync } from 'node:fs'
import { open, rename } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'
import { type MediaId, shardOf } from '../../core/media-id.ts'
import { systemCode } from './files.ts'

/** The file in `blobs/` that names the store; a disk that is not mounted, or another one, lacks it. */
export const identityName = '.identity'

/** The directory of the bytes as a start finds it, before anything in it is used. */
export interface BlobsDirectory {
  /** Where the bytes are expected. */
  readonly path: string
  /** Null where the directory has no identity, or does not exist. */
  read(): string | null
  /** Durable when it resolves; makes the directory if need be. */
  write(identity: string): Promise<void>
  /** Whether the bytes of this item are there. */
  has(id: MediaId): boolean
  /** True where no bytes were ever stored. */
  isEmpty(): boolean
}

export function openDiskBlobsDirectory(directory: string): BlobsDirectory {
  const path = join(resolve(directory), 'blobs')
  const file = join(path, identityName)
  return {
    path,
    read: () => unlessMissing(() => readFileSync(file, 'utf8').trim() || null, null),
    async write(identity) {
      mkdirSync(path, { recursive: true, mode: 0o700 })
      const made = await open(`${file}.new`, 'w', 0o600)
      try {
        await made.writeFile(`${identity}\n`)
        await made.sync()
      } finally {
        await made.close()
      }
      await rename(`${file}.new`, file)
      for (const changed of [path, dirname(path)]) {
        const opened = await open(changed, 'r')
        await opened.sync().finally(() => opened.close())
      }
    },
    has: (id) => lstatSync(join(path, shardOf(id), id), { throwIfNoEntry: false }) !== undefined,
    isEmpty: () => unlessMissing(() => readdirSync(path).every((name) => name.startsWith('.')), true),
  }
}

function unlessMissing<T>(read: () => T, otherwise: T): T {
  try {
    return read()
  } catch (error) {
    if (systemCode(error) === 'ENOENT') return otherwise
    throw error
  }
}
