import { randomUUID } from 'node:crypto'
import { join } from 'node:path'
import { workerData } from 'node:worker_threads'
import type { MediaId } from '../../core/media-id.ts'
import { type Outcome, serveBatches } from '../../threads/serve-batches.ts'
import { blockingFiles } from './blocking-files.ts'
import { createFileCommitter } from './commit-file.ts'
import { createSyncedFile } from './create-synced-file.ts'
import { createDirectorySync } from './directory-sync.ts'
import { asStorageFault } from './files.ts'
import { openShards } from './shards.ts'
import { timeWriterSyncs } from './sync-timing.ts'

// The only thread of the server that renames files into `blobs/`. It runs each step for the whole batch, so that the
// files of a batch share the syncs of their directories.

/** A file to commit: the bytes of a small file, or the path of a synced file. */
export interface FileToCommit {
  readonly id: MediaId
  readonly content: Uint8Array | string
}

const { directory }: { directory: string } = workerData
/** Seconds of the syncs since the last reply. */
let syncs: number[] = []
const files = timeWriterSyncs(blockingFiles, (seconds) => void syncs.push(seconds))
const sync = createDirectorySync(files)
const shards = await openShards(join(directory, 'blobs'), files, sync, true)
const commitFile = createFileCommitter({ shards, files, sync })

async function commit({ id, content }: FileToCommit): Promise<Outcome<undefined>> {
  try {
    if (typeof content === 'string') await commitFile(content, id)
    else await commitNew(content, id)
    return { output: undefined }
  } catch (error) {
    return { error: asStorageFault(error) }
  }
}

async function commitNew(bytes: Uint8Array, id: MediaId): Promise<void> {
  const path = join(directory, 'tmp', randomUUID())
  await createSyncedFile(files, path, (file) => file.write(bytes))
  try {
    await commitFile(path, id)
  } catch (error) {
    await files.unlink(path).catch(() => undefined)
    throw error
  }
}

serveBatches<FileToCommit, undefined, readonly number[]>(async (batch, reply) => {
  reply(await Promise.all(batch.map(commit)), syncs)
  syncs = []
})
