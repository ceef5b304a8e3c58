import { lstatSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { errorCode } from '../../core/error-code.ts'
import { shardOf } from '../../core/media-id.ts'
import { createDirectories } from '../../files/create-directories.ts'
import { replaceFile, syncPath } from '../../files/durable-files.ts'
import type { BlobsDirectory } from '../blobs.ts'
import { requireOwnDirectory } from './stored-file.ts'

/** The file in `blobs/` that identifies the store. It is missing where the disk is not mounted, and differs on another disk. */
export const identityName = '.identity'

export function openDiskBlobsDirectory(dataDirectory: string): BlobsDirectory {
  const path = join(resolve(dataDirectory), 'blobs')
  const file = join(path, identityName)
  return {
    path,
    isShared: false,
    advice: {
      place: 'the directory',
      catalog: 'set MEDIABUCKET_DATA to another directory',
      missing: 'perhaps its disk is not mounted',
      cure: 'Mount it there',
      identify: (identity) =>
        `Mount the right disk there, then try again. Several servers with one database need an S3 store (MEDIABUCKET_BLOBS_URL). Only if the files are in this directory, write ${identity} into ${file}.`,
    },
    readIdentity: async () => unlessMissing(() => readFileSync(file, 'utf8').trim() || null, null),
    async writeIdentity(identity) {
      createDirectories(path)
      requireOwnDirectory(path)
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
