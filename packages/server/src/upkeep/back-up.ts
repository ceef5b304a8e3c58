import { join } from 'node:path'
import type { BlobStore } from '../blobs/blobs.ts'
import type { CopyableAudit, MissingRows } from '../catalog/audit.ts'
import { earlierSnapshot, finishBackup, newSnapshot } from './backup-directory.ts'
import { type CopyResult, copyBlobs } from './copy-blobs.ts'

/**
 * Copies a snapshot of the rows, then the bytes that they name, into an open backup directory (docs/interface.md F6, F7).
 * The caller must hold the backup hold during the call, so that no bytes of the snapshot are deleted.
 */
export async function backUp(parts: {
  /** Writes the rows as of one moment into a directory. */
  readonly snapshot: CopyableAudit['snapshot']
  readonly blobs: Pick<BlobStore, 'open'>
  readonly directory: string
  readonly openAudit: (directory: string) => Promise<CopyableAudit>
  readonly openBlobs: (directory: string) => Promise<BlobStore>
  readonly onItem: (done: number, of: number) => void
}): Promise<CopyResult & Pick<MissingRows, 'hasLostEvents'>> {
  const { blobs, directory, onItem } = parts
  const target = await parts.openBlobs(directory)
  // Removes the temporary files of a killed backup.
  await target.recovery?.removeTemporary()
  const snapshot = await newSnapshot(directory)
  const path = join(directory, snapshot)
  const missing = await parts.snapshot(path, await earlierSnapshot(directory))
  const lost = missing.items.map((id) => ({ id, what: 'lost' as const }))
  const rows = await parts.openAudit(path)
  let result: CopyResult
  try {
    const { items } = await rows.count()
    let done = 0
    const copied = await copyBlobs({
      audit: rows,
      from: blobs,
      to: target,
      onItem: () => onItem(++done, items),
    })
    result = { ...copied, faulty: [...lost, ...copied.faulty] }
  } finally {
    await rows.close()
  }
  await finishBackup(directory, { snapshot, items: result.items, faulty: [...result.faulty] })
  return { ...result, hasLostEvents: missing.hasLostEvents }
}
