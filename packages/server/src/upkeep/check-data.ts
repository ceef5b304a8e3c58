import type { BlobAudit } from '../blobs/audit.ts'
import type { BlobStore } from '../blobs/blobs.ts'
import type { CatalogAudit } from '../catalog/audit.ts'
import type { Catalog } from '../catalog/catalog.ts'
import { type ItemId, isItemId } from '../core/media-id.ts'
import { isUploadId } from '../core/upload-id.ts'
import { checkContents } from './check-contents.ts'
import { checkItems } from './check-items.ts'
import { checkOrphans, type Quiescence } from './check-orphans.ts'
import { createFindings, type Finding, type Findings } from './findings.ts'

type CheckedCatalog = Pick<
  Catalog,
  | 'item'
  | 'tombstones'
  | 'clearTombstones'
  | 'intents'
  | 'clearIntents'
  | 'upload'
  | 'unfinishedUploads'
  | 'removeUpload'
>

export interface DataReport {
  readonly items: number
  /** Bytes found for the items. */
  readonly bytes: number
  readonly findings: readonly Finding[]
  /** True if a server was running, so that temporary files were not checked; null if the check did not need to know. */
  readonly serverRuns: boolean | null
  readonly isClean: boolean
}

/**
 * Compares rows with bytes and bytes with rows, and optionally repairs (docs/interface.md F1 to F5). A repair changes rows
 * only in a transaction that has checked them again, and moves unknown files instead of removing them.
 */
export async function checkData(parts: {
  readonly catalog: CheckedCatalog
  readonly audit: CatalogAudit
  readonly blobs: Pick<BlobStore, 'open' | 'remove'>
  readonly blobAudit: BlobAudit
  readonly isBackupRunning: () => boolean
  readonly quiescence: Quiescence
  readonly repair: boolean
  readonly verifyBytes: boolean
  /** `of` is the number of items at the start. */
  readonly onItem: (done: number, of: number) => void
}): Promise<DataReport> {
  const { audit, repair } = parts
  const findings = createFindings()

  const { details, rows, bytes } = await audit.damage()
  for (const detail of details) findings.add('catalog-damaged', detail)
  for (const id of rows) findings.add('row-unreadable', id)
  for (const id of bytes) findings.add('bytes-unreadable', id)
  // Damaged rows cannot be compared with anything.
  if (details.length > 0)
    return { items: 0, bytes: 0, findings: findings.all(), serverRuns: null, isClean: false }
  for (const { bucket, what, detail } of await (repair ? audit.recount() : audit.bucketFaults())) {
    findings.add(`bucket-${what}-wrong`, `${bucket}: ${detail}`)
    if (repair) findings.repaired(`bucket-${what}-wrong`)
  }
  await checkIds(parts.catalog, findings, repair)
  await checkContents({ ...parts, findings })
  const { items } = await audit.count()
  let done = 0
  const checked = await checkItems({ ...parts, findings, onItem: () => parts.onItem(++done, items) })
  const serverRuns = await checkOrphans({ ...parts, findings })

  const all = findings.all()
  const isClean = all.every(({ count, repaired }) => count === repaired)
  return { ...checked, findings: all, serverRuns, isClean }
}

/** Reports deletions and uploads whose ids the service did not create. They have no bytes, so a repair only removes their rows. */
async function checkIds(catalog: CheckedCatalog, findings: Findings, repair: boolean): Promise<void> {
  async function check<Id extends string>(
    what: string,
    ids: readonly Id[],
    remove: (ids: readonly Id[]) => Promise<unknown>,
  ): Promise<void> {
    for (const id of ids) findings.add('id-malformed', `${what} ${JSON.stringify(id)}`)
    if (!repair || ids.length === 0) return
    await remove(ids)
    findings.repaired('id-malformed', ids.length)
  }
  const malformed = (ids: readonly ItemId[]) => ids.filter((id) => !isItemId(id))
  await check('deletion', malformed(await catalog.tombstones()), (ids) => catalog.clearTombstones(ids))
  await check('intent', malformed(await catalog.intents()), (ids) => catalog.clearIntents(ids))
  const uploads = (await catalog.unfinishedUploads())
    .filter(({ id, itemId }) => !isUploadId(id) || !isItemId(itemId))
    .map(({ id }) => id)
  await check('upload', uploads, (ids) => Promise.all(ids.map((id) => catalog.removeUpload(id))))
}
