import { createWriteStream } from 'node:fs'
import { open } from 'node:fs/promises'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { finished } from 'node:stream/promises'
import type { ItemId } from '../core/ids.ts'
import type { BlobInspection, BlobStore } from '../storage/blobs/blobs.ts'
import { syncPath } from '../storage/durable-files.ts'
import { hashFile } from './copies.ts'

// The generations of a backup directory have rows of their own, and share the bytes in `blobs/`, whose names are never used again.
// The list of a generation names the bytes that it needs, so that the rows of an earlier version need not be opened.

const listName = 'blobs.txt'

/** One generation: its subdirectory, and the hash of its list, which backups of development versions do not have. */
export interface Generation {
  readonly snapshot: string
  readonly blobs?: string
}

/** Writes the ids of the items whose bytes are in `blobs/`, one a line. */
export interface BlobList {
  add(id: ItemId): void
  /** Syncs the list, and returns its hash. */
  finish(): Promise<string>
}

export function openBlobList(directory: string, snapshot: string): BlobList {
  const path = join(directory, snapshot, listName)
  const stream = createWriteStream(path, { flags: 'wx', mode: 0o600 })
  // `finish` throws it.
  stream.on('error', () => undefined)
  return {
    add: (id) => void stream.write(`${id}\n`),
    async finish() {
      stream.end()
      await finished(stream)
      syncPath(path)
      return hashFile(path)
    },
  }
}

/** Whether the list is what the backup wrote. */
export async function hasSoundList(directory: string, { snapshot, blobs }: Generation): Promise<boolean> {
  return (
    blobs !== undefined && (await hashFile(join(directory, snapshot, listName)).catch(() => null)) === blobs
  )
}

/**
 * Removes the bytes that none of the generations needs. Null, without a change, if the list of one of them is missing or damaged. Run it
 * when `backup.json` names only these generations, durably: a kill then leaves bytes that the next run removes.
 */
export async function removeUnneeded(parts: {
  readonly directory: string
  readonly generations: readonly Generation[]
  readonly blobs: Pick<BlobStore, 'remove'>
  readonly inspection: Pick<BlobInspection, 'entries'>
}): Promise<{ readonly removed: number; readonly bytes: number } | null> {
  const { directory, generations, blobs, inspection } = parts
  const needed = new Set<string>()
  for (const generation of generations) {
    if (!(await hasSoundList(directory, generation))) return null
    await using file = await open(join(directory, generation.snapshot, listName))
    for await (const id of createInterface({ input: file.createReadStream({ autoClose: false }) }))
      needed.add(id)
  }
  let [removed, bytes] = [0, 0]
  for await (const entry of inspection.entries())
    if (entry.kind === 'stored' && !needed.has(entry.id)) {
      await blobs.remove(entry.id)
      removed += 1
      bytes += entry.size
    }
  return { removed, bytes }
}
