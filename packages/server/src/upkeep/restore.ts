import { constants } from 'node:fs'
import { copyFile, rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { BlobStore } from '../blobs/blobs.ts'
import type { AuditedItem, CatalogAudit } from '../catalog/audit.ts'
import { syncPath } from '../files/durable-files.ts'
import { BackupError, readBackup } from './backup-directory.ts'
import { type Copied, copyBlobs } from './copy-blobs.ts'
import { hashFile } from './hashes.ts'
import { beginRestore, endRestore, stageOf } from './restore-stage.ts'

/**
 * Puts the last finished backup of a directory into an empty data directory, whose lock the caller holds: all of it,
 * or nothing that a service would take for data (docs/interface.md F8). A restore that was interrupted is completed by
 * another one of the same backup. Every byte is hashed in passing; items whose bytes are not whole in the backup are
 * restored without them and marked as damaged. Throws BackupError.
 */
export async function restore(parts: {
  /** The directory of the backup. */
  readonly from: string
  /** The data directory. */
  readonly data: string
  readonly openAudit: (directory: string) => Promise<CatalogAudit>
  readonly openBlobs: (directory: string) => Promise<BlobStore>
  readonly onItem: (done: number, of: number) => void
}): Promise<Copied> {
  const { from, data } = parts
  const backup = await readBackup(from)
  const rows = join(from, backup.snapshot, 'catalog.db')
  // Before anything is written to the target.
  if ((await hashFile(rows)) !== backup.sha256)
    throw new BackupError(`${rows} is not what the backup wrote: it is damaged. Use another backup.`)

  const before = await beginRestore(data, backup.sha256)
  if (before !== null) return before
  const stage = stageOf(data)
  const catalog = join(stage, 'catalog.db')
  for (const suffix of ['', '-wal', '-shm', '-journal']) await rm(`${catalog}${suffix}`, { force: true })
  await copyFile(rows, catalog, constants.COPYFILE_FICLONE)
  const result = await fill(parts, stage, backup.items)
  await syncPath(catalog)
  await syncPath(stage)
  await endRestore(data, backup.sha256, result, async () => {
    // The rows last: without them nothing here is data.
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
): Promise<Copied> {
  const audit = await openAudit(stage)
  try {
    const [damage] = await audit.damages()
    if (damage !== undefined) throw new BackupError(`The rows of the backup are damaged: ${damage}`)
    await audit.renew()
    const to = await openBlobs(stage)
    // What an interrupted restore had begun to copy.
    await to.recover()
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
    // What is in the stage was hashed on its way, now or by an interrupted restore.
    const faulty = new Set(result.faulty.map(({ id }) => id))
    await audit.unmark(marked.map(({ id }) => id).filter((id) => !faulty.has(id)))
    await audit.mark([...faulty])
    return result
  } finally {
    await audit.close()
  }
}
