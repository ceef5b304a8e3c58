import { readdirSync, readlinkSync } from 'node:fs'
import { mkdtempDisposable, readdir } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { newItemId, newUploadId } from '../../../src/core/ids.ts'
import { DiskBlobsDirectory } from '../../../src/storage/blobs/disk/blobs-directory.ts'
import { openDiskBlobs } from '../../../src/storage/blobs/disk/disk-blobs.ts'
import type { OpenedStore } from './blob-contract.ts'

export interface TemporaryStore extends OpenedStore {
  readonly directory: string
  /** Names in `tmp/`. */
  temporary(): Promise<string[]>
  /** Names in `uploads/`. */
  parts(): Promise<string[]>
  /** Paths under `blobs/` that are not directories. */
  stored(): Promise<string[]>
  /** Files of this store that the process holds open; empty if the system does not report them. */
  openFiles(): string[]
}

/** A disk store in its own directory, which is deleted when it is disposed. */
export async function temporaryStore(
  options: Omit<Parameters<typeof openDiskBlobs>[0], 'directory'> = {},
): Promise<TemporaryStore> {
  const directory = await mkdtempDisposable(join(tmpdir(), 'mediabucket-blobs-'))
  const path = directory.path
  // As the start of a server does.
  if (options.thread) await new DiskBlobsDirectory(path).writeIdentity('test')
  const store = await openDiskBlobs({ directory: path, ...options }).catch(async (error: unknown) => {
    await directory.remove()
    throw error
  })
  async function stored() {
    const entries = await readdir(join(path, 'blobs'), { recursive: true, withFileTypes: true })
    return entries
      .filter((entry) => !entry.isDirectory() && entry.name !== '.identity')
      .map((entry) => join(entry.parentPath, entry.name))
  }
  return {
    directory: path,
    store,
    newUpload: async (length) => ({ id: newUploadId(), itemId: newItemId(), length }),
    temporary: () => readdir(join(path, 'tmp')),
    parts: () => readdir(join(path, 'uploads')),
    count: async () => (await readdir(join(path, 'tmp'))).length + (await stored()).length,
    stored,
    openFiles: () =>
      openFiles().filter((file) =>
        ['tmp', 'uploads', 'blobs'].some((name) => file.startsWith(join(path, name))),
      ),
    async [Symbol.asyncDispose]() {
      await store.close()
      await directory.remove()
    },
  }
}

function openFiles(): string[] {
  if (process.platform !== 'linux') return []
  return readdirSync('/proc/self/fd').flatMap((descriptor) => {
    try {
      return [readlinkSync(`/proc/self/fd/${descriptor}`)]
    } catch {
      return []
    }
  })
}
