import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { isItemId } from '../core/ids.ts'
import { settleAll } from '../core/tasks.ts'
import type { BlobStore } from '../storage/blobs/blobs.ts'
import {
  type CopyableInspection,
  type InspectedItem,
  itemBatches,
} from '../storage/catalog/checks/inspection.ts'
import { createTemporaryDirectory, removeLeftDirectories } from '../storage/temporary-directories.ts'
import { type FinishedBackup, readBackup } from './backup.ts'
import { type CopyFault, createChunkReader, type FaultyItem, hashBlob, hashFile, openItem } from './copies.ts'
import { hasSoundList } from './generations.ts'
import { BackupError } from './interrupted-restore.ts'

/** Items whose bytes are read at the same time. */
const parallelism = 4

interface Verified {
  readonly backup: FinishedBackup
  readonly items: number
  readonly bytes: number
  /** Items whose bytes a restore would not have. */
  readonly faulty: readonly FaultyItem[]
}

/**
 * Reads all rows and bytes of a backup, and compares them with their hashes, as a restore does. Changes nothing. Throws BackupError if the
 * rows are damaged: then nothing of this backup can be restored.
 */
export async function verifyBackup(parts: {
  readonly directory: string
  /** As readBackup. */
  readonly at: string | null
  /** Copies the catalog of the backup into a directory. */
  readonly copyRows: (rows: string, directory: string) => Promise<void>
  readonly openInspection: (directory: string) => Promise<CopyableInspection>
  readonly openBlobs: (directory: string) => Promise<BlobStore>
  readonly onItem: (done: number, of: number) => void
}): Promise<Verified> {
  const { directory, at } = parts
  const backup = await readBackup(directory, at)
  const rows = join(directory, backup.snapshot, 'catalog.db')
  const hash = await hashFile(rows).catch(() => null)
  if (hash === null) throw new BackupError(`${rows} is missing or cannot be read. Use another backup.`)
  if (hash !== backup.sha256)
    throw new BackupError(`${rows} is not what the backup wrote: it is damaged. Use another backup.`)
  if (backup.blobs !== undefined && !(await hasSoundList(directory, backup)))
    throw new BackupError(
      `The list of the bytes in ${join(directory, backup.snapshot)} is damaged, so no backup removes bytes. Make backups in a new directory.`,
    )
  // An open catalog is written to or gets files beside it, and that of an earlier version is migrated.
  await removeLeftDirectories(Date.now())
  const scratch = await createTemporaryDirectory()
  try {
    await parts.copyRows(rows, scratch)
    const inspection = await parts.openInspection(scratch)
    try {
      return { backup, ...(await verifyItems(parts, inspection, backup)) }
    } finally {
      await inspection.close()
    }
  } finally {
    await rm(scratch, { recursive: true, force: true })
  }
}

async function verifyItems(
  { directory, openBlobs, onItem }: Parameters<typeof verifyBackup>[0],
  inspection: CopyableInspection,
  backup: FinishedBackup,
): Promise<Omit<Verified, 'backup'>> {
  const {
    details: [damage],
  } = await inspection.damage()
  if (damage !== undefined) throw new BackupError(`The rows of the backup are damaged: ${damage}`)
  const blobs = await openBlobs(directory)
  const readChunks = createChunkReader()
  const faulty: FaultyItem[] = backup.faulty.filter(({ what }) => what === 'lost')
  let [items, bytes] = [0, 0]

  async function verify(item: InspectedItem): Promise<CopyFault | null> {
    if (!isItemId(item.id)) return 'malformed'
    try {
      const blob = await openItem({ inspection, blobs }, item)
      if (blob === null) return 'missing'
      const isWhole = blob.size === item.size
      return Buffer.compare(await hashBlob(blob, readChunks), item.sha256) === 0 && isWhole ? null : 'changed'
    } catch {
      return 'unreadable'
    }
  }

  async function verifyItem(item: InspectedItem): Promise<void> {
    const what = await verify(item)
    if (what !== null) faulty.push({ id: item.id, what })
    items += 1
    bytes += item.size
    onItem(items, backup.items)
  }

  try {
    for await (const batch of itemBatches(inspection))
      for (const result of await settleAll(batch, parallelism, verifyItem))
        if (result.status === 'rejected') throw result.reason
  } finally {
    await blobs.close()
  }
  return { items, bytes, faulty }
}
