import { createCursors } from '../core/cursors.ts'
import { Fault } from '../core/faults.ts'
import { isItemId } from '../core/ids.ts'
import { ReadLengths } from '../core/read-lengths.ts'
import { type Actor, service } from '../core/token-rules.ts'
import type { Catalog } from '../storage/catalog/catalog.ts'
import type { BucketId, TrashedItem } from '../storage/catalog/records.ts'
import { type BlobDeletionParts, deleteBlobs } from './blob-deletion.ts'
import { type BucketWork, runTurn, turnTime, workInTurns } from './bucket-turns.ts'
import type { ItemRemover } from './deletion.ts'

/** Where the items of a list go. */
interface TrashSink {
  /** Returns how many of the items it had room for. */
  readonly add: (items: readonly TrashedItem[]) => Promise<number>
  /** The bytes of the items that it has. */
  readonly bytes: number
  /** Lets other requests run between two reads. */
  readonly pause: () => Promise<void>
}

/** Ids in the order in which they were requested, each once. */
interface RestoreResult {
  readonly restored: readonly string[]
  /** The trash has no such items. */
  readonly missing: readonly string[]
}

export type TrashOperations = ReturnType<typeof trashOperations>

/** Items in one transaction. */
const batchLength = 500
/** The same of the sweep, which other changes wait for. */
const purgeLength = 100

const placeShape = /^(0|[1-9]\d*)\.(0|[1-9]\d*)$/

function cursorMalformed(): Fault {
  const detail = 'after accepts the next_cursor of a response with the same token, unchanged.'
  return new Fault('cursor-malformed', detail, { parameters: [{ parameter: 'after', detail }] })
}

interface TrashParts {
  readonly catalog: Pick<Catalog, 'epoch' | 'listTrash' | 'restoreItems' | 'readChanges' | 'hasHadRevision'>
  readonly purge: ItemRemover['purge']
}

export function trashOperations(parts: TrashParts) {
  const reads = new ReadLengths()
  return {
    listTrash: (bucketId: BucketId, page: TrashPage, sink: TrashSink) =>
      listTrash({ ...parts, reads }, bucketId, page, sink),
    restoreItems: (bucketId: BucketId, ids: readonly string[], by: Actor) =>
      restoreItems(parts, bucketId, ids, by),
    emptyTrash: (bucketId: BucketId, by: Actor) => emptyTrash(parts, bucketId, by),
  }
}

interface TrashPage {
  readonly after: string | null
  readonly limit: number
}

/**
 * Adds items of the trash to a list, last deleted first (docs/interface.md Z2), until it has no room for more. Returns the cursor of the
 * last item; null if no items follow. Throws Fault `cursor-malformed`.
 */
async function listTrash(
  { catalog, reads }: TrashParts & { readonly reads: ReadLengths },
  bucketId: BucketId,
  { after, limit }: TrashPage,
  sink: TrashSink,
): Promise<string | null> {
  const cursors = createCursors(catalog.epoch)
  const list = ['trash', bucketId]
  let place = after === null ? null : placeOf(cursors.parse(list, after))
  for (let left = limit; ; ) {
    const length = Math.min(left, reads.next(bucketId))
    // One more than requested shows whether items follow.
    const { rows, examined } = await catalog.listTrash(bucketId, place?.seq ?? null, length + 1)
    if (place !== null && !(await catalog.hasHadRevision(bucketId, place.change))) throw cursorMalformed()
    // The list takes what it has room for.
    const read = rows.slice(0, length)
    const bytesBefore = sink.bytes
    const added = await sink.add(read)
    reads.note(bucketId, added, sink.bytes - bytesBefore)
    left -= added
    const isRead = added === rows.length
    if (isRead && examined === null) return null
    // The next read, or the next page, continues after the last item of the list.
    const seq = (isRead ? examined : read[added - 1]?.seq) ?? place?.seq ?? null
    if (seq !== null) {
      const end = await catalog.readChanges(bucketId, 'now', 0)
      place = { seq, change: end?.next ?? 0 }
    }
    if (added < read.length || left === 0 || isRead)
      return place && cursors.format(list, `${place.seq}.${place.change}`)
    await sink.pause()
  }
}

/**
 * The place of a cursor. Numbers of a trash are not reused, unless the data go back. So a cursor has the last change of the feed too, as of its
 * response. Throws Fault `cursor-malformed`.
 */
function placeOf(found: ReturnType<ReturnType<typeof createCursors>['parse']>) {
  const [, seq, change] = (found?.isOwn && placeShape.exec(found.place)) || []
  if (seq === undefined) throw cursorMalformed()
  return { seq: Number(seq), change: Number(change) }
}

/** Restores the items in one transaction (Z3). The ids may be any texts. Throws Fault `quota-exceeded`. */
async function restoreItems(
  { catalog }: TrashParts,
  bucketId: BucketId,
  ids: readonly string[],
  by: Actor,
): Promise<RestoreResult> {
  const wanted = [...new Set(ids)]
  const known = wanted.filter(isItemId)
  const restored: ReadonlySet<string> = new Set(
    known.length === 0 ? [] : await catalog.restoreItems(bucketId, known, by),
  )
  return { restored: [...restored], missing: wanted.filter((id) => !restored.has(id)) }
}

/** Deletes all items that are in the trash at the start permanently (Z4), and returns how many. */
async function emptyTrash({ catalog, purge }: TrashParts, bucketId: BucketId, by: Actor): Promise<number> {
  let count = 0
  for (let after: number | null = null; ; ) {
    const { rows, examined } = await catalog.listTrash(bucketId, after, batchLength)
    const ids = rows.map(({ item }) => item.id)
    const { deleted } = await purge(bucketId, ids, by)
    count += deleted.length
    after = examined ?? rows.at(-1)?.seq ?? null
    if (after === null || (examined === null && rows.length < batchLength)) return count
  }
}

/** Permanently deletes the items whose time in the trash has passed (docs/interface.md Z5), as workInTurns. Several servers may do it at the same time. */
export function purgeExpiredTrash(
  parts: Pick<BucketWork, 'isStopping' | 'onFailure'> & {
    readonly catalog: Pick<Catalog, 'expiringTrashes' | 'expiredTrash' | 'purgeItems'>
    readonly blobDeletion: BlobDeletionParts
    readonly now: () => number
    readonly turn?: number
  },
): Promise<void> {
  const { catalog, blobDeletion, now, isStopping, onFailure, turn = turnTime } = parts

  async function purgeSome(bucketId: BucketId): Promise<boolean> {
    const ids = await catalog.expiredTrash(bucketId, now(), purgeLength)
    if (ids.length === 0) return false
    const { tombstones } = await catalog.purgeItems(bucketId, ids, service)
    await deleteBlobs(blobDeletion, tombstones)
    return ids.length === purgeLength
  }

  return workInTurns({
    list: () => catalog.expiringTrashes(now()),
    takeTurn: (bucketId) => runTurn(() => purgeSome(bucketId), turn, isStopping),
    isStopping,
    onFailure,
  })
}
