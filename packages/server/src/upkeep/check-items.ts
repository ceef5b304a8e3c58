import { type BlobStore, BlobTruncatedError } from '../blobs/blobs.ts'
import { type AuditedItem, type CatalogAudit, itemBatches } from '../catalog/audit.ts'
import type { Catalog } from '../catalog/catalog.ts'
import { errorCode } from '../core/error-code.ts'
import { Fault } from '../core/fault.ts'
import { isItemId } from '../core/media-id.ts'
import { settleAll } from '../core/settle-all.ts'
import type { FindingCode, Findings } from './findings.ts'
import { hashBlob } from './hashes.ts'
import { openItem } from './open-item.ts'

/** Items that are checked in parallel. */
const parallelism = 8

/**
 * Checks the bytes of every item. A running server causes no false findings: it stores bytes before their row or with it, and
 * deletes them with it or after it, and a finding is added only if the row still exists after the check.
 */
export async function checkItems(parts: {
  readonly catalog: Pick<Catalog, 'item'>
  readonly audit: CatalogAudit
  readonly blobs: Pick<BlobStore, 'open'>
  readonly findings: Findings
  /** Reads and hashes every byte. Marks items with wrong bytes as damaged, and unmarks those with correct ones. */
  readonly verifyBytes: boolean
  readonly onItem: () => void
}): Promise<{ items: number; bytes: number }> {
  const { catalog, audit, blobs, findings, verifyBytes, onItem } = parts
  let items = 0
  let bytes = 0

  async function checkBytes(item: AuditedItem): Promise<FindingCode | 'intact' | 'unverified'> {
    const blob = await openItem({ audit, blobs }, item)
    if (blob === null) return 'bytes-missing'
    bytes += blob.size
    if (blob.size !== item.size) {
      await blob.close()
      return 'size-wrong'
    }
    if (!verifyBytes) {
      await blob.close()
      return item.damaged ? 'bytes-damaged' : 'unverified'
    }
    return Buffer.compare(await hashBlob(blob), item.sha256) === 0 ? 'intact' : 'hash-wrong'
  }

  /** Such an id must not become a path. */
  function reportMalformed(item: AuditedItem): void {
    items += 1
    findings.add('id-malformed', `item ${JSON.stringify(item.id)}`)
    onItem()
  }

  async function checkItem(item: AuditedItem): Promise<void> {
    if (!isItemId(item.id)) return reportMalformed(item)
    const verdict = await checkBytes(item).catch((error: unknown) => {
      // Other errors, such as those of the catalog, are not findings about this item.
      if (isUnreadable(error)) return 'bytes-unreadable' as const
      throw error
    })
    items += 1
    if (verdict === 'intact') {
      if (item.damaged) await audit.unmarkDamaged([item.id])
    } else if (verdict !== 'unverified' && (await catalog.item(item.id)) !== null) {
      findings.add(verdict, item.id)
      if (verdict === 'hash-wrong') await audit.markDamaged([item.id])
    }
    onItem()
  }

  for await (const batch of itemBatches(audit))
    for (const result of await settleAll(batch, parallelism, checkItem))
      if (result.status === 'rejected') throw result.reason
  return { items, bytes }
}

function isUnreadable(error: unknown): boolean {
  // The store throws it for an entry that is not a regular file (docs/interface.md B8).
  if (error instanceof Fault) return error.code === 'media-unknown'
  return error instanceof BlobTruncatedError || ['EIO', 'EACCES'].includes(errorCode(error) ?? '')
}
