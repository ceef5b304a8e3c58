import { constants } from 'node:fs'
import { copyFile, mkdir, readdir, rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { BlobStore } from '../blobs/blobs.ts'
import type { AuditedItem, CatalogAudit } from '../catalog/audit.ts'
import { BackupError, readBackup } from './backup-directory.ts'
import { type Copied, copyBlobs } from './copy-blobs.ts'
import { sha256Of, syncPath } from './durable-files.ts'

/** Where a restore gathers everything before it puts it in place; what an interrupted one left there is dropped. */
const staging = 'restoring'

/** What may stand in the data directory before: nothing that anybody could miss. */
const harmless: ReadonlySet<string> = new Set([
  staging,
  'lock.db',
  'lock.db-journal',
  'hold.db',
  'hold.db-journal',
  'lost+found',
])
const harmlessWhenEmpty: ReadonlySet<string> = new Set(['blobs', 'tmp', 'uploads', 'variants'])

/**
 * Puts the last finished backup of a directory into an empty data directory, whose lock the caller holds: all of it,
 * or nothing that a service would take for data (docs/interface.md F8). Every byte is hashed in passing; items whose
 * bytes are not whole in the backup are restored without them. Throws BackupError.
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
  await requireEmpty(data)
  const rows = join(from, backup.snapshot, 'catalog.db')
  if ((await sha256Of(rows)) !== backup.sha256)
    throw new BackupError(`${rows} is not what the backup wrote: it is damaged. Use another backup.`)

  const stage = join(data, staging)
  await rm(stage, { recursive: true, force: true })
  await mkdir(stage, { mode: 0o700 })
  await copyFile(rows, join(stage, 'catalog.db'), constants.COPYFILE_FICLONE)
  const result = await fill(parts, stage, backup.items)

  // The rows last: without them nothing here is data.
  await syncPath(join(stage, 'catalog.db'))
  await rename(join(stage, 'blobs'), join(data, 'blobs'))
  await syncPath(data)
  await rename(join(stage, 'catalog.db'), join(data, 'catalog.db'))
  await syncPath(data)
  await rm(stage, { recursive: true, force: true })
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
    let done = 0
    const marked: AuditedItem[] = []
    const result = await copyBlobs({
      audit,
      from: await openBlobs(from),
      to: await openBlobs(stage),
      onItem(item) {
        if (item.damaged) marked.push(item)
        onItem(++done, items)
      },
    })
    // Whatever was copied has been hashed.
    const faulty = new Set(result.faulty.map(({ id }) => id))
    await audit.unmark(marked.map(({ id }) => id).filter((id) => !faulty.has(id)))
    return result
  } finally {
    await audit.close()
  }
}

async function requireEmpty(data: string): Promise<void> {
  for (const name of await readdir(data)) {
    if (harmless.has(name)) continue
    if (harmlessWhenEmpty.has(name) && (await readdir(join(data, name))).length === 0) continue
    throw new BackupError(
      `${data} holds data already (${name}); nothing was changed. Move it away, or set MEDIABUCKET_DATA to another directory.`,
    )
  }
}
