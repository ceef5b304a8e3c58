import type { BlobAudit } from '../blobs/audit.ts'
import type { BlobStore } from '../blobs/blobs.ts'
import type { CatalogAudit } from '../catalog/audit.ts'
import type { Catalog } from '../catalog/catalog.ts'
import { checkContents } from './check-contents.ts'
import { checkItems } from './check-items.ts'
import { checkOrphans, type Quiescence } from './check-orphans.ts'
import { createFindings, type Finding } from './findings.ts'

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
  readonly catalog: Pick<Catalog, 'media' | 'tombstones' | 'clearTombstones' | 'intents' | 'upload'>
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

  const damages = await audit.damages()
  for (const damage of damages) findings.add('catalog-damaged', damage)
  // Damaged rows cannot be compared with anything.
  if (damages.length > 0)
    return { items: 0, bytes: 0, findings: findings.all(), serverRuns: null, isClean: false }
  for (const { bucket, what, detail } of await (repair ? audit.recount() : audit.bucketFaults())) {
    findings.add(`bucket-${what}-wrong`, `${bucket}: ${detail}`)
    if (repair) findings.repaired(`bucket-${what}-wrong`)
  }
  await checkContents({ ...parts, findings })
  const { items } = await audit.count()
  let done = 0
  const checked = await checkItems({ ...parts, findings, onItem: () => parts.onItem(++done, items) })
  const serverRuns = await checkOrphans({ ...parts, findings })

  const all = findings.all()
  const isClean = all.every(({ isFault, count, repaired }) => !isFault || count === repaired)
  return { ...checked, findings: all, serverRuns, isClean }
}
