import type { BlobStore } from '../blobs/blobs.ts'
import { type AuditedItem, type CatalogAudit, itemBatches } from '../catalog/audit.ts'
import type { Catalog } from '../catalog/catalog.ts'
import { errorCode } from '../core/error-code.ts'
import { Fault } from '../core/fault.ts'
import { settleAll } from '../core/settle-all.ts'
import type { FindingCode, Findings } from './findings.ts'
import { hashBlob } from './hashes.ts'

/** Items that are checked in parallel. */
const parallelism = 8

/**
 * Checks the bytes of every item. The findings are certain, also beside a running server: bytes exist before their row and
 * are deleted after it, so if the row still exists after the check, its bytes were missing or wrong.
 */
export async function checkItems(parts: {
  readonly catalog: Pick<Catalog, 'media'>
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

  async function inspect(item: AuditedItem): Promise<FindingCode | 'sound' | 'unverified'> {
    const blob = await blobs.open(item.id)
    if (blob === null) return item.sha256 === null ? 'seeded-without-bytes' : 'bytes-missing'
    bytes += blob.size
    if (blob.size !== item.size || !verifyBytes || item.sha256 === null) {
      await blob.close()
      if (blob.size !== item.size) return 'size-wrong'
      return item.damaged ? 'bytes-damaged' : 'unverified'
    }
    return Buffer.compare(await hashBlob(blob), item.sha256) === 0 ? 'sound' : 'hash-wrong'
  }

  async function check(item: AuditedItem): Promise<void> {
    const verdict = await inspect(item).catch((error: unknown) => {
      // Other errors, such as those of the catalog, are not findings about this item.
      if (isUnreadable(error)) return 'bytes-unreadable' as const
      throw error
    })
    items += 1
    if (verdict === 'sound') {
      if (item.damaged) await audit.unmark([item.id])
    } else if (verdict !== 'unverified' && (await catalog.media(item.id)) !== null) {
      findings.add(verdict, item.id)
      if (verdict === 'hash-wrong') await audit.mark([item.id])
    }
    onItem()
  }

  for await (const batch of itemBatches(audit))
    for (const result of await settleAll(batch, parallelism, check))
      if (result.status === 'rejected') throw result.reason
  return { items, bytes }
}

function isUnreadable(error: unknown): boolean {
  if (error instanceof Fault) return error.code === 'media-unknown'
  if (!(error instanceof Error)) return false
  return ['EIO', 'EACCES'].includes(errorCode(error) ?? '') || /ended before/.test(error.message)
}
