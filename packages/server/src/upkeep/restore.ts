import { rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { BlobStore } from '../blobs/blobs.ts'
import type { AuditedItem, CopyableAudit } from '../catalog/audit.ts'
import { syncPath } from '../files/durable-files.ts'
import { readBackup } from './backup-directory.ts'
import { BackupError } from './backup-error.ts'
import { type CopyResult, copyBlobs } from './copy-blobs.ts'
import { hashFile } from './hashes.ts'
import { beginRestore, endRestore, markDirectory, stagingDirectory } from './restore-stage.ts'

/**
 * Restores the last finished backup into an empty data directory, and holds the lock of the directory until it ends. Until it has finished, no
 * service starts on the directory (docs/interface.md F8). Restoring the same backup again completes an interrupted restore.
 * Verifies the hash of every item; items whose bytes are missing or wrong in the backup are restored without bytes and marked
 * as damaged. Throws BackupError.
 */
export async function restore(parts: {
  /** The directory of the backup. */
  readonly from: string
  /** The data directory. */
  readonly data: string
  readonly lock: () => { release(): void }
  /** Copies the catalog of the backup into a directory. */
  readonly copyRows: (rows: string, directory: string) => Promise<void>
  readonly openAudit: (directory: string) => Promise<CopyableAudit>
  readonly openBlobs: (directory: string) => Promise<BlobStore>
  readonly onItem: (done: number, of: number) => void
}): Promise<CopyResult> {
  const { from, data } = parts
  const backup = await readBackup(from)
  const rows = join(from, backup.snapshot, 'catalog.db')
  if ((await hashFile(rows)) !== backup.sha256)
    throw new BackupError(`${rows} is not what the backup wrote: it is damaged. Use another backup.`)
  await markDirectory(data)
  const lock = parts.lock()
  try {
    return (await beginRestore(data, backup.sha256)) ?? (await restoreRows(parts, rows, backup))
  } finally {
    lock.release()
  }
}

async function restoreRows(
  parts: Parameters<typeof restore>[0],
  rows: string,
  backup: { readonly sha256: string; readonly items: number },
): Promise<CopyResult> {
  const { data } = parts
  const stage = stagingDirectory(data)
  const catalog = join(stage, 'catalog.db')
  for (const suffix of ['', '-wal', '-shm', '-journal']) await rm(`${catalog}${suffix}`, { force: true })
  await parts.copyRows(rows, stage)
  const result = await fill(parts, stage, backup.items)
  await syncPath(catalog)
  await syncPath(stage)
  await endRestore(data, backup.sha256, result, async () => {
    // The rows last: without catalog.db the directory holds no data.
    await rename(join(stage, 'blobs'), join(data, 'blobs'))
    await syncPath(data)
    await rename(catalog, join(data, 'catalog.db'))
    await syncPath(data)
  })
  return result
}

async function fill(
  { from, openAudit, openBlobs, onItem }: Parameters<typeof restore>[0],
  stage: string,
  items: number,
): Promise<CopyResult> {
  const audit = await openAudit(stage)
  try {
    const {
      details: [damage],
    } = await audit.damage()
    if (damage !== undefined) throw new BackupError(`The rows of the backup are damaged: ${damage}`)
    await audit.renew()
    const to = await openBlobs(stage)
    // Removes the temporary files of an interrupted restore.
    await to.recovery?.removeTemporary()
    let done = 0
    const marked: AuditedItem[] = []
    const result = await copyBlobs({
      audit,
      from: await openBlobs(from),
      to,
      onItem(item) {
        if (item.damaged) marked.push(item)
        onItem(++done, items)
      },
    })
    // All bytes in the stage were verified when they were copied, now or by an interrupted restore.
    const faulty = new Set(result.faulty.map(({ id }) => id))
    await audit.unmarkDamaged(marked.map(({ id }) => id).filter((id) => !faulty.has(id)))
    await audit.markDamaged([...faulty])
    return result
  } finally {
    await audit.close()
  }
}
