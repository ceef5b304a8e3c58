import type { BlobAudit, BlobEntry } from '../blobs/audit.ts'
import type { BlobStore } from '../blobs/blobs.ts'
import type { CatalogAudit } from '../catalog/audit.ts'
import type { Catalog } from '../catalog/catalog.ts'
import type { MediaId } from '../core/media-id.ts'
import { deleteBlobs } from '../media/deletion/delete-blobs.ts'
import type { FindingCode, Findings } from './findings.ts'

/** How a check makes sure that what it saw is not just on its way. */
export interface Quiet {
  /** The data's lock, which keeps servers out; null while one runs. */
  lock(): { release(): void } | null
  /** Lets what a running server had under way come to its end; by a clock that nobody sets. */
  grace(): Promise<void>
}

interface Parts {
  readonly catalog: Pick<Catalog, 'tombstones' | 'clearTombstones' | 'upload'>
  readonly audit: Pick<CatalogAudit, 'findUnreferenced' | 'retire'>
  readonly blobs: Pick<BlobStore, 'open' | 'remove'>
  readonly blobAudit: BlobAudit
  readonly isHeldByBackup: () => boolean
  readonly findings: Findings
  readonly quiet: Quiet
  readonly repair: boolean
}

type Kept = Extract<BlobEntry, { kind: 'kept' }>

/** Ids that are looked up together. */
const batch = 500

/**
 * Looks for what stands on the disk and is named by nothing, and for deletes that were not finished; says whether a
 * server was running, or null where there was nothing to ask for.
 *
 * Uploads put bytes in place before their row commits, so everything is looked at twice: with the data's lock, when
 * nothing can be under way, or after a grace. The grace only spares slow uploads: before bytes are moved, a
 * transaction retires their id, after which no commit can name them (0003-upkeep.ts). So no upload that was answered
 * with 201 can lose its bytes, whatever the clocks say and however long its commit takes.
 */
export async function checkOrphans(parts: Parts): Promise<boolean | null> {
  const { catalog, blobAudit, quiet } = parts
  const suspects: BlobEntry[] = []
  for await (const some of batches(blobAudit.entries())) suspects.push(...(await unexplained(parts, some)))
  const tombstones = new Set(await catalog.tombstones())
  if (suspects.length === 0 && tombstones.size === 0) return null

  const lock = quiet.lock()
  try {
    if (lock === null) {
      if (tombstones.size === 0 && suspects.every(({ kind }) => kind === 'temporary')) return true
      await quiet.grace()
    }
    const standing: BlobEntry[] = []
    for (const found of suspects) {
      // The start of a server clears tmp/, so all that is there may be an upload under way.
      if (lock === null && found.kind === 'temporary') continue
      if (await blobAudit.exists(found)) standing.push(found)
    }
    await settleLeftovers(parts, await unexplained(parts, standing))
    const left = (await catalog.tombstones()).filter((id) => tombstones.has(id))
    await settleTombstones(parts, left)
    return lock === null
  } finally {
    lock?.release()
  }
}

/** Those that nothing in the catalog accounts for now. */
async function unexplained({ catalog, audit }: Parts, all: readonly BlobEntry[]): Promise<BlobEntry[]> {
  const ofItems = all.flatMap((found) =>
    found.kind === 'kept' || found.kind === 'variant' ? [found.id] : [],
  )
  const unreferenced = new Set(await audit.findUnreferenced(ofItems))
  const rest: BlobEntry[] = []
  for (const found of all) {
    if ((found.kind === 'kept' || found.kind === 'variant') && !unreferenced.has(found.id)) continue
    // A part of a finished upload has become an item: what stands there still is nothing any more.
    if (found.kind === 'part' && (await catalog.upload(found.id))?.finished === false) continue
    rest.push(found)
  }
  return rest
}

const codes: Readonly<Record<BlobEntry['kind'], FindingCode>> = {
  kept: 'bytes-orphaned',
  variant: 'variant-orphaned',
  temporary: 'temporary-stale',
  part: 'part-stale',
  foreign: 'entry-foreign',
}

async function settleLeftovers(parts: Parts, leftovers: readonly BlobEntry[]): Promise<void> {
  const { audit, blobAudit, findings, repair } = parts
  if (!repair) {
    for (const { kind, path } of leftovers) findings.add(codes[kind], path)
    return
  }
  const kept = leftovers.filter((found): found is Kept => found.kind === 'kept')
  const retired = new Set<MediaId>(await audit.retire(kept.map(({ id }) => id)))
  for (const found of leftovers) {
    // Named meanwhile, or gone: nothing was wrong after all.
    if (found.kind === 'kept' && !retired.has(found.id)) continue
    const path = await blobAudit.quarantine(found)
    if (path === null) continue
    findings.add(codes[found.kind], `${found.path} → ${path}`)
    findings.repaired(codes[found.kind])
  }
}

/** Deletes that were answered are finished: it is what was asked for, and nothing names these bytes any more. */
async function settleTombstones(parts: Parts, ids: readonly MediaId[]): Promise<void> {
  const { blobs, findings, repair } = parts
  const withBytes = new Map<MediaId, FindingCode>()
  for (const id of ids) {
    const blob = await blobs.open(id)
    await blob?.close()
    const code = blob ? 'tombstone-with-bytes' : 'tombstone-without-bytes'
    withBytes.set(id, code)
    // A backup may hold them: then all is as it should be.
    if (!parts.isHeldByBackup()) findings.add(code, id)
  }
  if (!repair || parts.isHeldByBackup()) return
  const failed = new Set<MediaId>()
  await deleteBlobs({ ...parts, onDeletionFailure: (id) => failed.add(id) }, ids)
  for (const [id, code] of withBytes) if (!failed.has(id)) findings.repaired(code)
}

async function* batches<T>(all: AsyncIterable<T>): AsyncGenerator<T[]> {
  let some: T[] = []
  for await (const one of all) {
    some.push(one)
    if (some.length < batch) continue
    yield some
    some = []
  }
  yield some
}
