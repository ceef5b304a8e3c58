import { type ItemId, isItemId, isUploadId } from '../core/ids.ts'
import { settleAll } from '../core/tasks.ts'
import { deleteBlobs } from '../items/blob-deletion.ts'
import {
  type BlobEntry,
  type BlobInspection,
  type BlobStore,
  EntryUnmovable,
} from '../storage/blobs/blobs.ts'
import type { Catalog } from '../storage/catalog/catalog.ts'
import {
  type BucketSelection,
  type CatalogInspection,
  type InspectedItem,
  itemBatches,
} from '../storage/catalog/checks/inspection.ts'
import { checkParts } from './check-parts.ts'
import { createChunkReader, hashBlob, isUnreadable, openItem } from './copies.ts'
import { createFindings, type Finding, type FindingCode, type Findings } from './findings.ts'

type CheckedCatalog = Pick<
  Catalog,
  | 'item'
  | 'listTombstones'
  | 'removableBlobs'
  | 'clearTombstones'
  | 'listIntents'
  | 'clearIntents'
  | 'findUpload'
  | 'unfinishedUploads'
  | 'listParts'
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
  readonly inspection: CatalogInspection
  readonly blobs: Pick<BlobStore, 'open' | 'remove' | 'removalsAtOnce'>
  readonly blobInspection: BlobInspection
  readonly isBackupRunning: () => boolean
  readonly quiescence: Quiescence
  readonly repair: boolean
  readonly verifyBytes: boolean
  /** `of` is the number of items at the start. */
  readonly onItem: (done: number, of: number) => void
}): Promise<DataReport> {
  const { inspection, repair } = parts
  const findings = createFindings()

  const { details, rows, bytes } = await inspection.damage()
  for (const detail of details) findings.add('catalog-damaged', detail)
  for (const id of rows) findings.add('row-unreadable', id)
  for (const id of bytes) findings.add('bytes-unreadable', id)
  // Damaged rows cannot be compared with anything.
  if (details.length > 0)
    return { items: 0, bytes: 0, findings: findings.all(), serverRuns: null, isClean: false }
  await checkMeta(inspection, findings, repair)
  const wrong = await checkRows(inspection, findings, repair)
  // What these values make impossible is left out.
  function reportFailure(what: string, error: unknown): void {
    if (!wrong.isAny) throw error
    findings.add('check-failed', `${what}: ${error instanceof Error ? error.message : String(error)}`)
  }
  const attempt = async <T>(what: string, otherwise: T, check: () => Promise<T>): Promise<T> => {
    try {
      return await check()
    } catch (error) {
      reportFailure(what, error)
      return otherwise
    }
  }
  const selection: BucketSelection = {
    except: wrong.uncountable,
    onFailure: (id, error) => reportFailure(`counters and ranks of bucket ${id}`, error),
  }
  for (const id of wrong.uncountable)
    findings.add('check-failed', `counters and ranks of bucket ${id}: rows have impossible numbers`)
  await attempt('counters of buckets', undefined, () => checkBuckets(inspection, selection, findings, repair))
  await attempt('ids', undefined, () => checkIds(parts.catalog, findings, repair))
  await attempt('claims of bytes', undefined, () => checkClaims(parts, findings))
  await attempt('bytes in the catalog', undefined, () => checkContents({ ...parts, findings }))
  const { items } = await attempt('the number of items', { items: 0, bytes: 0 }, () => inspection.count())
  let done = 0
  const checked = await attempt('bytes of items', { items: 0, bytes: 0 }, () =>
    checkItems({ ...parts, findings, onItem: () => parts.onItem(++done, items) }),
  )
  await attempt('bytes of parts', undefined, () => checkParts({ ...parts, findings }))
  const serverRuns = await attempt('files', null, () => checkOrphans({ ...parts, findings }))

  const all = findings.all()
  const isClean = all.every(({ count, repaired }) => count === repaired)
  return { ...checked, findings: all, serverRuns, isClean }
}

async function checkMeta(
  inspection: Pick<CatalogInspection, 'metaFaults' | 'correctMeta'>,
  findings: Findings,
  repair: boolean,
): Promise<void> {
  for (const { key, value } of await (repair ? inspection.correctMeta() : inspection.metaFaults())) {
    findings.add('meta-wrong', `${key} is ${value === null ? 'missing' : JSON.stringify(value.slice(0, 60))}`)
    if (repair) findings.repaired('meta-wrong')
  }
}

/** Numbers for which ranks are built. An impossible one would use up the memory. */
const sequences: ReadonlySet<string> = new Set(['items.seq', 'buckets.next_seq'])

interface WrongRows {
  /** Whether rows have values that the service does not write. */
  readonly isAny: boolean
  /** Ids of buckets with impossible sequence numbers. */
  readonly uncountable: ReadonlySet<number>
}

/**
 * Reports values that the service does not write, and rows that refer to rows which do not exist; a repair removes those of them that are
 * derived from other rows, or belong to them.
 */
async function checkRows(
  inspection: Pick<CatalogInspection, 'wrongRows' | 'removeDangling'>,
  findings: Findings,
  repair: boolean,
): Promise<WrongRows> {
  let isAny = false
  const uncountable = new Set<number>()
  const dangling = new Set<string>()
  for await (const faults of inspection.wrongRows())
    for (const { table, column, row, isDangling } of faults) {
      findings.add(isDangling ? 'row-dangling' : 'row-wrong', `${table} ${row}: ${column}`)
      if (isDangling) dangling.add(table)
      else isAny = true
      // The key of both tables begins with the id of the bucket.
      if (sequences.has(`${table}.${column}`)) uncountable.add(Number(row.split(' ', 1)[0]))
    }
  if (repair)
    for (const table of dangling) findings.repaired('row-dangling', await inspection.removeDangling(table))
  return { isAny, uncountable }
}

async function checkBuckets(
  inspection: Pick<CatalogInspection, 'recount' | 'bucketFaults'>,
  selection: BucketSelection,
  findings: Findings,
  repair: boolean,
): Promise<void> {
  const faults = await (repair ? inspection.recount(selection) : inspection.bucketFaults(selection))
  for (const { bucket, what, detail } of faults) {
    findings.add(`bucket-${what}-wrong`, `${bucket}: ${detail}`)
    if (repair) findings.repaired(`bucket-${what}-wrong`)
  }
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
  await check('deletion', malformed(await catalog.listTombstones()), (ids) => catalog.clearTombstones(ids))
  await check('intent', malformed(await catalog.listIntents()), (ids) => catalog.clearIntents(ids))
  const uploads = (await catalog.unfinishedUploads())
    .filter(({ id, itemId }) => !isUploadId(id) || !isItemId(itemId))
    .map(({ id }) => id)
  await check('upload', uploads, (ids) => Promise.all(ids.map((id) => catalog.removeUpload(id))))
}

/** Reports tombstones and unfinished uploads with ids whose bytes are those of an item. A repair removes these rows, and no bytes. */
async function checkClaims(
  {
    catalog,
    inspection,
    repair,
  }: { catalog: CheckedCatalog; inspection: CatalogInspection; repair: boolean },
  findings: Findings,
): Promise<void> {
  const tombstones = repair ? await inspection.removeWrongTombstones() : await inspection.wrongTombstones()
  for (const id of tombstones) findings.add('tombstone-wrong', id)
  if (repair) findings.repaired('tombstone-wrong', tombstones.length)
  for (const id of await inspection.uploadsOfItems()) {
    findings.add('upload-wrong', id)
    if (repair && (await catalog.removeUpload(id, true))) findings.repaired('upload-wrong')
  }
}

/** Items that are checked in parallel. */
const parallelism = 8

/**
 * Checks the bytes of every item. A running server causes no false findings: it stores bytes before their row or with it, and
 * deletes them with it or after it, and a finding is added only if the row still exists after the check.
 */
export async function checkItems(parts: {
  readonly catalog: Pick<Catalog, 'item'>
  readonly inspection: CatalogInspection
  readonly blobs: Pick<BlobStore, 'open'>
  readonly findings: Findings
  /** Reads and hashes every byte. Marks items with wrong bytes as damaged, and unmarks those with correct ones. */
  readonly verifyBytes: boolean
  readonly onItem: () => void
}): Promise<{ items: number; bytes: number }> {
  const { catalog, inspection, blobs, findings, verifyBytes, onItem } = parts
  const readChunks = createChunkReader()
  let items = 0
  let bytes = 0

  async function checkBytes(item: InspectedItem): Promise<FindingCode | 'intact' | 'unverified'> {
    const blob = await openItem({ inspection, blobs }, item)
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
    return Buffer.compare(await hashBlob(blob, readChunks), item.sha256) === 0 ? 'intact' : 'hash-wrong'
  }

  /** Such an id must not become a path. */
  function reportMalformed(item: InspectedItem): void {
    items += 1
    findings.add('id-malformed', `item ${JSON.stringify(item.id)}`)
    onItem()
  }

  async function checkItem(item: InspectedItem): Promise<void> {
    if (!isItemId(item.id)) return reportMalformed(item)
    const verdict = await checkBytes(item).catch((error: unknown) => {
      // Other errors, such as those of the catalog, are not findings about this item.
      if (isUnreadable(error)) return 'bytes-unreadable' as const
      throw error
    })
    items += 1
    if (verdict === 'intact') {
      if (item.damaged) await inspection.unmarkDamaged([item.id])
    } else if (verdict !== 'unverified' && (await catalog.item(item.id)) !== null) {
      findings.add(verdict, item.id)
      if (verdict === 'hash-wrong') await inspection.markDamaged([item.id])
    }
    onItem()
  }

  for await (const batch of itemBatches(inspection))
    for (const result of await settleAll(batch, parallelism, checkItem))
      if (result.status === 'rejected') throw result.reason
  return { items, bytes }
}

/** Excludes operations in progress from a check. */
export interface Quiescence {
  /** The lock of the data directory, which keeps servers out; null while a server runs. */
  lock(): { release(): void } | null
  /** Waits until the operations in progress have probably ended. */
  wait(): Promise<void>
}

interface Parts {
  readonly catalog: Pick<
    Catalog,
    'listTombstones' | 'removableBlobs' | 'clearTombstones' | 'findUpload' | 'listIntents'
  >
  readonly inspection: Pick<CatalogInspection, 'findUnreferenced' | 'retire' | 'wrongTombstones'>
  readonly blobs: Pick<BlobStore, 'open' | 'remove' | 'removalsAtOnce'>
  readonly blobInspection: BlobInspection
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
 * (`retired` in storage/catalog/engines/sqlite/sqlite-schema.ts). So no completed upload can lose its bytes, however long its commit takes.
 */
async function checkOrphans(parts: Parts): Promise<boolean | null> {
  const { catalog, inspection, blobInspection, quiescence } = parts
  const candidates: BlobEntry[] = []
  for await (const batch of batches(blobInspection.entries()))
    candidates.push(...(await orphansOf(parts, batch)))
  const wrong = new Set(await inspection.wrongTombstones())
  const tombstones = new Set((await catalog.listTombstones()).filter((id) => isItemId(id) && !wrong.has(id)))
  if (candidates.length === 0 && tombstones.size === 0) return null

  const lock = quiescence.lock()
  try {
    if (lock === null) {
      if (tombstones.size === 0 && candidates.every(({ kind }) => kind === 'temporary')) return true
      await quiescence.wait()
    }
    const uploading = new Set<ItemId>(lock === null ? await catalog.listIntents() : [])
    const existing: BlobEntry[] = []
    for (const entry of candidates) {
      // A server removes stale temporary files when it starts, so these may belong to uploads in progress.
      if (lock === null && entry.kind === 'temporary') continue
      // An upload that stores its bytes under their id long before its row, as on S3. A sweep removes them if it was interrupted.
      if (entry.kind === 'stored' && uploading.has(entry.id)) continue
      if (await blobInspection.exists(entry)) existing.push(entry)
    }
    await reportOrRepairOrphans(parts, await orphansOf(parts, existing))
    const remaining = (await catalog.listTombstones()).filter((id) => tombstones.has(id))
    await reportOrRepairTombstones(parts, remaining)
    return lock === null
  } finally {
    lock?.release()
  }
}

/** The entries that belong to no item or unfinished upload, temporary and foreign ones included. */
async function orphansOf(
  { catalog, inspection }: Parts,
  entries: readonly BlobEntry[],
): Promise<BlobEntry[]> {
  const ids = entries.flatMap((entry) =>
    entry.kind === 'stored' || entry.kind === 'variant' ? [entry.id] : [],
  )
  const unreferenced = new Set(await inspection.findUnreferenced(ids))
  const orphans: BlobEntry[] = []
  for (const entry of entries) {
    if ((entry.kind === 'stored' || entry.kind === 'variant') && !unreferenced.has(entry.id)) continue
    // A finished upload has its bytes under the id of its item, so a partial file under its own id is an orphan.
    if (entry.kind === 'partial' && (await catalog.findUpload(entry.id))?.finished === false) continue
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
  unreadable: 'entry-unreadable',
}

async function reportOrRepairOrphans(parts: Parts, orphans: readonly BlobEntry[]): Promise<void> {
  const { inspection, blobInspection, findings, repair } = parts
  if (!repair) {
    for (const { kind, path } of orphans) findings.add(codes[kind], path)
    return
  }
  const stored = orphans.filter((entry): entry is StoredBlob => entry.kind === 'stored')
  const retired = new Set<ItemId>(await inspection.retire(stored.map(({ id }) => id)))
  for (const entry of orphans) {
    // A row names it now, or it was removed: not a finding.
    if (entry.kind === 'stored' && !retired.has(entry.id)) continue
    // It may contain the bytes of items.
    const path = entry.kind === 'unreadable' ? entry.path : await quarantine(blobInspection, entry)
    if (path === null) continue
    if (path === entry.path) {
      findings.add(codes[entry.kind], entry.path)
      continue
    }
    findings.add(codes[entry.kind], `${entry.path} → ${path}`)
    findings.repaired(codes[entry.kind])
  }
}

/** The same path if this user cannot move the entry. */
async function quarantine(blobInspection: BlobInspection, entry: BlobEntry): Promise<string | null> {
  try {
    return await blobInspection.quarantine(entry)
  } catch (error) {
    if (error instanceof EntryUnmovable) return entry.path
    throw error
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

/**
 * Reports bytes in the catalog that no item has; a repair moves them to `lost+found/`. They are removed with their rows, so
 * only a damaged catalog has such bytes, and no item can get them later.
 */
async function checkContents(parts: {
  readonly inspection: Pick<CatalogInspection, 'orphanedContents' | 'content' | 'removeContents'>
  readonly blobInspection: Pick<BlobInspection, 'setAside'>
  readonly findings: Findings
  readonly repair: boolean
}): Promise<void> {
  const { inspection, blobInspection, findings, repair } = parts
  for (const id of await inspection.orphanedContents()) {
    const bytes = repair ? await inspection.content(id) : null
    if (bytes === null) {
      findings.add('content-orphaned', `content ${id} of catalog.db`)
      continue
    }
    const path = await blobInspection.setAside(`content.${id}`, bytes)
    await inspection.removeContents([id])
    findings.add('content-orphaned', `content ${id} of catalog.db → ${path}`)
    findings.repaired('content-orphaned')
  }
}
