import type { BlobAudit } from '../blobs/audit.ts'
import type { BlobStore } from '../blobs/blobs.ts'
import type { AuditedItem, CatalogAudit } from '../catalog/audit.ts'
import type { Catalog } from '../catalog/catalog.ts'
import { checkItems } from './check-items.ts'
import { checkLeftovers, type Quiet } from './check-leftovers.ts'
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
  readonly isHeld: () => boolean
  readonly quiet: Quiet
  readonly repair: boolean
  readonly verifyBytes: boolean
  readonly onItem: (item: AuditedItem) => void
}): Promise<DataReport> {
  const { audit, repair } = parts
  const findings = createFindings()

  const damages = await audit.damages()
  for (const damage of damages) findings.add('catalog-damaged', damage)
  // Nothing is rebuilt from rows that cannot be believed.
  const mends = repair && damages.length === 0
  for (const { bucket, what, detail } of await (mends ? audit.recount() : audit.bucketFaults())) {
    findings.add(`bucket-${what}-wrong`, `${bucket}: ${detail}`)
    if (mends) findings.repaired(`bucket-${what}-wrong`)
  }
  const checked = await checkItems({ ...parts, findings })
  const serverRuns = await checkLeftovers({ ...parts, findings, repair: mends })

  const all = findings.all()
  const isClean = all.every(({ isFault, count, repaired }) => !isFault || count === repaired)
  return { ...checked, findings: all, serverRuns, isClean }
}
