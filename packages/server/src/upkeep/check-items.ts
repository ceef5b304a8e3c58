import type { BlobStore } from '../blobs/blobs.ts'
import { type AuditedItem, type CatalogAudit, itemBatches } from '../catalog/audit.ts'
import type { Catalog } from '../catalog/catalog.ts'
import { errorCode } from '../core/error-code.ts'
import { Fault } from '../core/fault.ts'
import { settleAll } from '../core/settle-all.ts'
import type { FindingCode, Findings } from './findings.ts'
import { hashBlob } from './hashes.ts'

const atOnce = 8

/**
 * Looks at the bytes of every item. What is found is found for certain, beside a running server too: bytes are in place
 * before their row is, and go after it, so a row that stands after the look stood without its bytes.
 */
export async function checkItems(parts: {
  readonly catalog: Pick<Catalog, 'media'>
  readonly audit: CatalogAudit
  readonly blobs: Pick<BlobStore, 'open'>
  readonly findings: Findings
  /** Reads and hashes every byte, and marks the items that turn out changed, or unmarks those that do not. */
  readonly verifyBytes: boolean
  readonly onItem: () => void
}): Promise<{ items: number; bytes: number }> {
  const { catalog, audit, blobs, findings, verifyBytes, onItem } = parts
  let items = 0
  let bytes = 0

  async function look(item: AuditedItem): Promise<FindingCode | 'sound' | 'unverified'> {
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
    const verdict = await look(item).catch((error: unknown) => {
      // A catalog, or a machine, that fails is no finding about one item.
      if (isOfTheBytes(error)) return 'bytes-unreadable' as const
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
    for (const result of await settleAll(batch, atOnce, check))
      if (result.status === 'rejected') throw result.reason
  return { items, bytes }
}

function isOfTheBytes(error: unknown): boolean {
  if (error instanceof Fault) return error.code === 'media-unknown'
  if (!(error instanceof Error)) return false
  return ['EIO', 'EACCES'].includes(errorCode(error) ?? '') || /ended before/.test(error.message)
}
