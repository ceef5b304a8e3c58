import type { BlobAudit } from '../blobs/audit.ts'
import type { BlobStore } from '../blobs/blobs.ts'
import type { CatalogAudit } from '../catalog/audit.ts'
import type { Catalog } from '../catalog/catalog.ts'
import { checkItems } from './check-items.ts'
import { checkOrphans, type Quiet } from './check-orphans.ts'
import { createFindings, type Finding } from './findings.ts'

export interface DataReport {
  readonly items: number
  /** Bytes found under the items. */
  readonly bytes: number
  readonly findings: readonly Finding[]
  /** Whether a server was running, so that temporary files could not be judged; null where nobody had to know. */
  readonly serverRuns: boolean | null
  readonly isClean: boolean
}

/**
 * Checks rows against bytes and bytes against rows, and repairs what it can if asked to (docs/interface.md F1 to F5).
 * It never changes a row but within a transaction that has looked again, and never removes what it cannot explain.
 */
export async function checkData(parts: {
  readonly catalog: Pick<Catalog, 'media' | 'tombstones' | 'clearTombstones' | 'upload'>
  readonly audit: CatalogAudit
  readonly blobs: Pick<BlobStore, 'open' | 'remove'>
  readonly blobAudit: BlobAudit
  readonly isHeldByBackup: () => boolean
  readonly quiet: Quiet
  readonly repair: boolean
  readonly verifyBytes: boolean
  /** `of` is how many items there were at the start. */
  readonly onItem: (done: number, of: number) => void
}): Promise<DataReport> {
  const { audit, repair } = parts
  const findings = createFindings()

  const damages = await audit.damages()
  for (const damage of damages) findings.add('catalog-damaged', damage)
  // Nothing is concluded, and nothing moved, from rows that cannot be believed.
  if (damages.length > 0)
    return { items: 0, bytes: 0, findings: findings.all(), serverRuns: null, isClean: false }
  for (const { bucket, what, detail } of await (repair ? audit.recount() : audit.bucketFaults())) {
    findings.add(`bucket-${what}-wrong`, `${bucket}: ${detail}`)
    if (repair) findings.repaired(`bucket-${what}-wrong`)
  }
  const { items } = await audit.count()
  let done = 0
  const checked = await checkItems({ ...parts, findings, onItem: () => parts.onItem(++done, items) })
  const serverRuns = await checkOrphans({ ...parts, findings })

  const all = findings.all()
  const isClean = all.every(({ isFault, count, repaired }) => !isFault || count === repaired)
  return { ...checked, findings: all, serverRuns, isClean }
}
