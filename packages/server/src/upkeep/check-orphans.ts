import type { BlobAudit, BlobEntry } from '../blobs/audit.ts'
import type { BlobStore } from '../blobs/blobs.ts'
import type { CatalogAudit } from '../catalog/audit.ts'
import type { Catalog } from '../catalog/catalog.ts'
import { type ItemId, isItemId } from '../core/media-id.ts'
import { deleteBlobs } from '../media/deletion/delete-blobs.ts'
import type { FindingCode, Findings } from './findings.ts'

/** Excludes operations in progress from a check. */
export interface Quiescence {
  /** The lock of the data directory, which keeps servers out; null while a server runs. */
  lock(): { release(): void } | null
  /** Waits until the operations in progress have probably ended. */
  wait(): Promise<void>
}

interface Parts {
  readonly catalog: Pick<Catalog, 'tombstones' | 'clearTombstones' | 'upload' | 'intents'>
  readonly audit: Pick<CatalogAudit, 'findUnreferenced' | 'retire'>
  readonly blobs: Pick<BlobStore, 'open' | 'remove'>
  readonly blobAudit: BlobAudit
  readonly isBackupRunning: () => boolean
  readonly findings: Findings
  readonly quiescence: Quiescence
  readonly repair: boolean
}

type StoredBlob = Extract<BlobEntry, { kind: 'stored' }>

/** The number of entries that one query looks up. */
const batchLength = 500

/**
 * Reports orphans and unfinished deletes, or repairs them. Returns whether a server was running; null if no candidate was
 * found, because the lock is not tried then.
 *
 * An upload stores its bytes before its row, so each candidate is checked a second time: under the lock of the data
 * directory, or after a wait if a server holds the lock. The wait only avoids false findings. Safety comes from `retire`:
 * before bytes are moved, a transaction reserves their id, and no commit can name it afterwards
 * (`retired` in catalog/sqlite/schema.ts). So no completed upload can lose its bytes, however long its commit takes.
 */
export async function checkOrphans(parts: Parts): Promise<boolean | null> {
  const { catalog, blobAudit, quiescence } = parts
  const candidates: BlobEntry[] = []
  for await (const batch of batches(blobAudit.entries())) candidates.push(...(await orphansOf(parts, batch)))
  const tombstones = new Set((await catalog.tombstones()).filter(isItemId))
  if (candidates.length === 0 && tombstones.size === 0) return null

  const lock = quiescence.lock()
  try {
    if (lock === null) {
      if (tombstones.size === 0 && candidates.every(({ kind }) => kind === 'temporary')) return true
      await quiescence.wait()
    }
    const uploading = new Set<ItemId>(lock === null ? await catalog.intents() : [])
    const existing: BlobEntry[] = []
    for (const entry of candidates) {
      // A server removes stale temporary files when it starts, so these may belong to uploads in progress.
      if (lock === null && entry.kind === 'temporary') continue
      // An upload that stores its bytes under their id long before its row, as on S3. A sweep removes them if it was interrupted.
      if (entry.kind === 'stored' && uploading.has(entry.id)) continue
      if (await blobAudit.exists(entry)) existing.push(entry)
    }
    await reportOrRepairOrphans(parts, await orphansOf(parts, existing))
    const remaining = (await catalog.tombstones()).filter((id) => tombstones.has(id))
    await reportOrRepairTombstones(parts, remaining)
    return lock === null
  } finally {
    lock?.release()
  }
}

/** The entries that belong to no item or unfinished upload, temporary and foreign ones included. */
async function orphansOf({ catalog, audit }: Parts, entries: readonly BlobEntry[]): Promise<BlobEntry[]> {
  const ids = entries.flatMap((entry) =>
    entry.kind === 'stored' || entry.kind === 'variant' ? [entry.id] : [],
  )
  const unreferenced = new Set(await audit.findUnreferenced(ids))
  const orphans: BlobEntry[] = []
  for (const entry of entries) {
    if ((entry.kind === 'stored' || entry.kind === 'variant') && !unreferenced.has(entry.id)) continue
    // A finished upload has its bytes under the id of its item, so a partial file under its own id is an orphan.
    if (entry.kind === 'partial' && (await catalog.upload(entry.id))?.finished === false) continue
    orphans.push(entry)
  }
  return orphans
}

const codes: Readonly<Record<BlobEntry['kind'], FindingCode>> = {
  stored: 'bytes-orphaned',
  variant: 'variant-orphaned',
  temporary: 'temporary-stale',
  partial: 'part-stale',
  foreign: 'entry-foreign',
}

async function reportOrRepairOrphans(parts: Parts, orphans: readonly BlobEntry[]): Promise<void> {
  const { audit, blobAudit, findings, repair } = parts
  if (!repair) {
    for (const { kind, path } of orphans) findings.add(codes[kind], path)
    return
  }
  const stored = orphans.filter((entry): entry is StoredBlob => entry.kind === 'stored')
  const retired = new Set<ItemId>(await audit.retire(stored.map(({ id }) => id)))
  for (const entry of orphans) {
    // A row names it now, or it was removed: not a finding.
    if (entry.kind === 'stored' && !retired.has(entry.id)) continue
    const path = await blobAudit.quarantine(entry)
    if (path === null) continue
    findings.add(codes[entry.kind], `${entry.path} → ${path}`)
    findings.repaired(codes[entry.kind])
  }
}

/** A repair deletes the bytes of tombstones: their deletes were acknowledged, and no row names the bytes. */
async function reportOrRepairTombstones(parts: Parts, ids: readonly ItemId[]): Promise<void> {
  const { blobs, findings, repair } = parts
  const codeOf = new Map<ItemId, FindingCode>()
  for (const id of ids) {
    const blob = await blobs.open(id)
    await blob?.close()
    const code = blob ? 'tombstone-with-bytes' : 'tombstone-without-bytes'
    codeOf.set(id, code)
    // While a backup defers deletions, tombstones are expected.
    if (!parts.isBackupRunning()) findings.add(code, id)
  }
  if (!repair || parts.isBackupRunning()) return
  const failed = new Set<ItemId>()
  await deleteBlobs({ ...parts, onDeletionFailure: (id) => failed.add(id) }, ids)
  for (const [id, code] of codeOf) if (!failed.has(id)) findings.repaired(code)
}

async function* batches<T>(all: AsyncIterable<T>): AsyncGenerator<T[]> {
  let batch: T[] = []
  for await (const one of all) {
    batch.push(one)
    if (batch.length < batchLength) continue
    yield batch
    batch = []
  }
  yield batch
}
