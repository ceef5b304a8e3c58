import { raisedRevision } from '../buckets.ts'
import { type Methods, writesOf } from '../declarations.ts'
import type { BucketId } from '../records.ts'
import { eachEngine, first, type Query, type Work, write } from '../statements.ts'
import { readMeta, writeMeta } from '../upkeep.ts'
import { numbersOf, readChanges } from './feed.ts'

/**
 * Notices that the data have gone back to an earlier state without `restore`: by a snapshot of a disk, a copied directory, pg_restore, or a failover
 * to a replica that lacks the last commits. Then readers know changes that the data do not have.
 *
 * The numbers of changes have a random step, so that a number which the data have lost is not used again for another change. So a
 * reader that presents such a number proves what has happened, and its own place is refused. Webhooks have their places in the catalog, which have
 * gone back too: for them, and for what is not in the feed any more, a renewal makes all earlier places and revisions invalid.
 */
export interface HistoryCatalog {
  /**
   * Renews the history if the catalog is at another location than at the last call, or lacks one of the changes, although it has not removed them
   * because of their age. Returns whether it did. A start, which `claims` the location, stores that of a new catalog.
   */
  checkHistory(announced: readonly AnnouncedChange[], claims?: boolean): Promise<boolean>

  /** Every reader of a feed starts again, every webhook sends `changes.lost`, and no earlier entity tag or cursor of a list is valid. */
  renewHistory(): Promise<void>

  /**
   * Where the catalog is, as far as this process knows; empty if it cannot be known. It is part of cursors of the feed: a copy elsewhere has changes of its
   * own, whose cursors do not prove that these data have gone back.
   */
  knownLocation(): string

  /** The last change of each feed whose effects this process has read, of up to 32 buckets that were read last. */
  announcedChanges(): readonly AnnouncedChange[]
}

/** A change that a reader has received. */
export interface AnnouncedChange {
  readonly bucketId: BucketId
  readonly number: number
}

/** Buckets of which the last change is known. */
export const maxAnnounced = 32

/** The methods of a catalog that notice lost changes. `check` and `renew` make the changes of these names. */
export function openHistory(parts: {
  readonly query: <T>(query: Query<T>) => Promise<T>
  readonly location: () => Promise<string | null>
  /** What `location` has returned when the catalog was opened. */
  readonly openedAt: string | null
  readonly check: (...input: Parameters<typeof checkHistory>) => Promise<boolean>
  readonly renew: (...input: Parameters<typeof renewHistory>) => Promise<void>
  /** Called before `onRenewal` if the catalog has noticed it by itself. */
  readonly onNotice: () => void
  readonly onRenewal: () => void
}): HistoryCatalog & Methods<{ readonly readChanges: typeof readChanges }> {
  const { query, location, openedAt, check, renew, onNotice, onRenewal } = parts
  const known = createAnnouncedChanges()
  let knownLocation = openedAt ?? ''

  async function checkIfNeeded(announced: readonly AnnouncedChange[], claims = false): Promise<boolean> {
    const input = [await location(), announced] as const
    // A new connection can lead to another database.
    knownLocation = input[0] ?? knownLocation
    if (!(await query(needsRenewal(...input, claims)))) return false
    const isRenewed = await check(...input)
    if (isRenewed) {
      known.forget()
      onNotice()
      onRenewal()
    }
    return isRenewed
  }

  return {
    async readChanges(bucketId, after, limit) {
      const rows = await query(readChanges(bucketId, after, limit))
      if (rows !== null) known.add(bucketId, rows.seen)
      // If the catalog cannot be written, the next such reader, or the next start, renews the history.
      else {
        const announced = numbersOf(after).map((number) => ({ bucketId, number }))
        if (announced.length > 0) await checkIfNeeded(announced).catch(() => false)
      }
      return rows
    },
    checkHistory: checkIfNeeded,
    async renewHistory() {
      await renew([])
      onRenewal()
    },
    knownLocation: () => knownLocation,
    announcedChanges: known.list,
  }
}

/** The changes of HistoryCatalog.announcedChanges. */
function createAnnouncedChanges() {
  const numbers = new Map<BucketId, number>()
  return {
    add(bucketId: BucketId, number: number): void {
      const known = numbers.get(bucketId) ?? 0
      numbers.delete(bucketId)
      numbers.set(bucketId, Math.max(known, number))
      const [oldest] = numbers.keys()
      if (numbers.size > maxAnnounced && oldest !== undefined) numbers.delete(oldest)
    },
    forget: (): void => numbers.clear(),
    list: (): readonly AnnouncedChange[] => [...numbers].map(([bucketId, number]) => ({ bucketId, number })),
  }
}

/**
 * The key of `meta` with the location of the catalog: where the database is, as far as a copy of it is elsewhere. The value is empty before the first
 * start, and while the location cannot be known.
 */
export const locationKey = 'place'

const lacking = `SELECT 1 FROM buckets WHERE id = $1 AND changes_start < $2
  AND NOT EXISTS (SELECT 1 FROM changes WHERE bucket_id = $1 AND number = $2)`

function* lacksOne(announced: readonly AnnouncedChange[]): Query<boolean> {
  for (const { bucketId, number } of announced)
    if ((yield* first(() => true, lacking, bucketId, number)) === true) return true
  return false
}

/** Whether `checkHistory` has something to do. */
function* needsRenewal(
  location: string | null,
  announced: readonly AnnouncedChange[],
  claims: boolean,
): Query<boolean> {
  const stored = yield* readMeta(locationKey)
  if (location !== null && location !== stored && ((stored !== null && stored !== '') || claims)) return true
  return yield* lacksOne(announced)
}

/** Makes the change of HistoryCatalog.checkHistory. `location` is null if it cannot be known. */
export function* checkHistory(location: string | null, announced: readonly AnnouncedChange[]): Work<boolean> {
  let isElsewhere = false
  if (location !== null) {
    // Of several processes that find the catalog elsewhere, one renews the history.
    const move = "UPDATE meta SET value = $2 WHERE key = $1 AND value <> $2 AND value <> ''"
    isElsewhere = (yield* write(move, locationKey, location)) === 1
    yield* writeMeta(locationKey, location)
  }
  if (!isElsewhere) {
    if (!(yield* lacksOne(announced))) return false
    // Another process may have renewed the history before the locks were granted.
    yield* write(lockBuckets)
    if (!(yield* lacksOne(announced))) return false
  }
  yield* renewHistory(announced)
  return true
}

/** In the order in which transactions lock buckets. */
const lockBuckets = {
  sqlite: null,
  postgres: 'SELECT id FROM buckets WHERE id > 0 ORDER BY id FOR NO KEY UPDATE',
}

/**
 * By how much a renewal raises the revisions: above those of thousands of changes that the data have lost, whose readers are then refused without
 * another renewal.
 */
const leap = 2 ** 32

const raise = eachEngine(
  (engine) => `UPDATE buckets SET revision = ${raisedRevision[engine]} + ${leap} WHERE id > 0`,
)

/** Makes the change of HistoryCatalog.renewHistory. The rows of the feed stay until the sweep removes them, because they may be many. */
export function* renewHistory(announced: readonly AnnouncedChange[]): Work<undefined> {
  yield* write(lockBuckets)
  for (const { bucketId, number } of announced)
    yield* write('UPDATE buckets SET revision = $2 WHERE id = $1 AND revision < $2', bucketId, number)
  yield* write(raise)
  yield* write('UPDATE buckets SET changes_start = revision, renewed = revision WHERE id > 0')
  yield* write('UPDATE webhooks SET position = NULL, pending = NULL')
}

/** Whether the bucket has had this revision in the present history. True if the feed does not reach back to it. */
export function* hasHadRevision(bucketId: BucketId, revision: number): Query<boolean> {
  const found = yield* first(
    () => true,
    `SELECT 1 FROM buckets WHERE id = $1 AND renewed <= $2 AND (changes_start >= $2 OR revision = $2
      OR EXISTS (SELECT 1 FROM changes WHERE bucket_id = $1 AND number = $2))`,
    bucketId,
    revision,
  )
  return found === true
}

export const reads = { hasHadRevision }

export const writes = writesOf({ checkHistory, renewHistory })
