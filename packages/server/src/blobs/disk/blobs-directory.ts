import { lstatSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { errorCode } from '../../core/error-code.ts'
import { type MediaId, shardOf } from '../../core/media-id.ts'
import { createDirectories } from '../../files/create-directories.ts'
import { replaceFile, syncPath } from '../../files/durable-files.ts'

/** The file in `blobs/` that identifies the store. It is missing where the disk is not mounted, and differs on another disk. */
export const identityName = '.identity'

/** The directory of the blobs, as a start checks it before the store is opened. */
export interface BlobsDirectory {
  readonly path: string
  /** Null if the directory has no identity or does not exist. */
  readIdentity(): Promise<string | null>
  /** Durable when it resolves. Creates the directory if it is missing. */
  writeIdentity(identity: string): Promise<void>
  /** Whether the file of this item exists. */
  has(id: MediaId): Promise<boolean>
  /** True if no blob was ever stored. */
  isEmpty(): Promise<boolean>
}

export function openDiskBlobsDirectory(dataDirectory: string): BlobsDirectory {
  const path = join(resolve(dataDirectory), 'blobs')
  const file = join(path, identityName)
  return {
    path,
    readIdentity: async () => unlessMissing(() => readFileSync(file, 'utf8').trim() || null, null),
    async writeIdentity(identity) {
      createDirectories(path)
      await replaceFile(file, `${identity}\n`)
      await syncPath(dirname(path))
    },
    has: async (id) => lstatSync(join(path, shardOf(id), id), { throwIfNoEntry: false }) !== undefined,
    isEmpty: async () => unlessMissing(() => readdirSync(path).every((name) => name.startsWith('.')), true),
  }
}

function unlessMissing<T>(read: () => T, otherwise: T): T {
  try {
    return read()
  } catch (error) {
    if (errorCode(error) === 'ENOENT') return otherwise
    throw error
  }
}
