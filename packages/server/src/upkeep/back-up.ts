import { join } from 'node:path'
import type { BlobStore } from '../blobs/blobs.ts'
import type { CatalogAudit } from '../catalog/audit.ts'
import { finishBackup, newSnapshot } from './backup-directory.ts'
import { type Copied, copyBlobs } from './copy-blobs.ts'

/**
 * Copies rows as of one moment, then the bytes that they name, into a directory of backups that is open already
 * (docs/interface.md F6, F7). Removals must be held from before the call until after it: then every byte that the rows
 * name stays until it is copied.
 */
export async function backUp(parts: {
  readonly audit: Pick<CatalogAudit, 'snapshot'>
  readonly blobs: Pick<BlobStore, 'open'>
  readonly directory: string
  readonly openAudit: (directory: string) => Promise<CatalogAudit>
  readonly openBlobs: (directory: string) => Promise<BlobStore>
  readonly onItem: (done: number, of: number) => void
}): Promise<Copied> {
  const { audit, blobs, directory, onItem } = parts
  const target = await parts.openBlobs(directory)
  // What a backup that was killed had begun to copy.
  await target.recover()
  const snapshot = await newSnapshot(directory)
  const path = join(directory, snapshot)
  await audit.snapshot(path)
  const rows = await parts.openAudit(path)
  let result: Copied
  try {
    const { items } = await rows.count()
    let done = 0
    result = await copyBlobs({
      audit: rows,
      from: blobs,
      to: target,
      onItem: () => onItem(++done, items),
    })
  } finally {
    await rows.close()
  }
  await finishBackup(directory, { snapshot, items: result.items, faulty: [...result.faulty] })
  return result
}
