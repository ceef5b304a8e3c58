import { join } from 'node:path'
import { type CopyableAudit, readAuditedItem } from '../audit.ts'
import type { BucketId, ContentId } from '../records.ts'
import { integer } from '../rows.ts'
import { findUnreferenced, retireIds } from '../upkeep.ts'
import { readTimeout } from './connection.ts'
import { prepareContentRows, prepareReadContent } from './content-rows.ts'
import { copySnapshot } from './copy-snapshot.ts'
import { findDamage } from './damage.ts'
import { openDataDirectory } from './data-directory.ts'
import { prepareRecount } from './recount.ts'
import { all, one } from './rows.ts'
import { prepareSnapshots } from './snapshot.ts'
import { asFault } from './sqlite-errors.ts'
import { createRun } from './statements.ts'
import { runTransaction } from './transaction.ts'

/** Ids in one transaction. It takes a few milliseconds, during which a running server's writes wait. */
const chunk = 500

/** Opens the rows for a check, a backup or a restore, on a separate connection. */
export async function openSqliteAudit(directory: string): Promise<CopyableAudit> {
  const db = openDataDirectory(directory, readTimeout)
  const count = db.prepare('SELECT count(*), coalesce(sum(size), 0) FROM media')
  const itemRows =
    db.prepare(`SELECT bucket_id, seq, media.id, size, sha256, damaged.id IS NOT NULL, content_id
    FROM media LEFT JOIN damaged ON damaged.id = media.id
    WHERE (bucket_id, seq) > (?, ?) ORDER BY bucket_id, seq LIMIT ?`)
  const run = createRun(db)
  const mark = db.prepare('INSERT INTO damaged (id) SELECT id FROM media WHERE id = ? ON CONFLICT DO NOTHING')
  const unmark = db.prepare('DELETE FROM damaged WHERE id = ?')
  const recount = prepareRecount(db)
  const readContent = prepareReadContent(db)
  const contents = prepareContentRows(db)
  const snapshots = prepareSnapshots(db)
  const orphanedContents = db.prepare(`SELECT id FROM contents
    WHERE id NOT IN (SELECT content_id FROM media WHERE content_id IS NOT NULL)`)

  const faultsOf = (id: BucketId) => snapshots.run(() => recount.faults(id))
  async function inChunks<Id, T>(ids: readonly Id[], work: (ids: readonly Id[]) => T): Promise<T[]> {
    const results: T[] = []
    for (let done = 0; done < ids.length; done += chunk)
      results.push(await writing(() => runTransaction(db, () => work(ids.slice(done, done + chunk)))))
    return results
  }

  return {
    damage: async () => findDamage(db),

    async count() {
      const row = one(count) ?? []
      return { items: integer(row, 0), bytes: integer(row, 1) }
    },

    items: async (after, limit) =>
      all(itemRows, after?.bucketId ?? Number.MIN_SAFE_INTEGER, after?.seq ?? -1, limit).map(readAuditedItem),

    content: async (id) => readContent(id),

    orphanedContents: async () => all(orphanedContents).map((row) => integer(row, 0) as ContentId),

    async removeContents(ids) {
      await inChunks(ids, (some) => some.forEach(contents.remove))
    },

    findUnreferenced: async (ids) => run(findUnreferenced(ids)),

    retire: async (ids) => (await inChunks(ids, (some) => run(retireIds(some)))).flat(),

    async markDamaged(ids) {
      await inChunks(ids, (some) => {
        for (const id of some) mark.run(id)
      })
    },

    async unmarkDamaged(ids) {
      await inChunks(ids, (some) => {
        for (const id of some) unmark.run(id)
      })
    },

    bucketFaults: async () => recount.buckets().flatMap(faultsOf),

    recount: () =>
      writing(() =>
        recount
          .buckets()
          // Locks out a server's writes only for a bucket that is wrong, and only while it is counted again.
          .filter((id) => faultsOf(id).length > 0)
          .flatMap((id) => runTransaction(db, () => recount.correct(id))),
      ),

    async snapshot(into, earlier) {
      try {
        const catalogOf = (place: string) => join(place, 'catalog.db')
        return await copySnapshot(catalogOf(directory), catalogOf(into), earlier && catalogOf(earlier))
      } catch (error) {
        throw asFault(error)
      }
    },

    async renew() {
      await writing(() => runTransaction(db, () => db.exec(renewal)))
    },

    async close() {
      if (db.isOpen) db.close()
    },
  }
}

const renewal = `
  UPDATE meta SET value = lower(hex(randomblob(16))) WHERE key = 'epoch';
  DELETE FROM meta WHERE key = 'blobs';
  DELETE FROM upload_parts;
  DELETE FROM upload_pieces;
  DELETE FROM uploads WHERE finished = 0;
  UPDATE buckets SET reserved_items = 0, reserved_bytes = 0;
  DELETE FROM tombstones;
  DELETE FROM intents;`

async function writing<T>(write: () => T): Promise<T> {
  try {
    return write()
  } catch (error) {
    throw asFault(error)
  }
}
