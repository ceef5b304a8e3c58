import type { MediaId } from '../../core/media-id.ts'
import { type BucketFault, type CatalogAudit, readAuditedItem } from '../audit.ts'
import type { BucketId, ContentId } from '../records.ts'
import { bytes, integer, type Row, text } from '../rows.ts'
import { openDatabase } from './open-database.ts'
import { asFault } from './postgres-errors.ts'
import { bucketFaults, bucketIds, correctBucket } from './recount.ts'
import type { Session } from './session.ts'
import { runTransaction } from './transaction.ts'

/** Ids in one transaction. It takes a few milliseconds, during which a running server's writes may wait. */
const chunk = 500

/** Opens the rows for a check. Throws DatabaseError and CatalogVersionError. */
export async function openPostgresAudit(url: string): Promise<CatalogAudit> {
  const connections = await openDatabase(url, { readers: 1, writers: 1, readTimeout: 0 })

  async function run(statement: string, ...values: unknown[]): Promise<Row[]> {
    try {
      return await connections.read((session) => session.run(statement, ...values))
    } catch (error) {
      throw asFault(error)
    }
  }

  const change = <T>(work: (session: Session) => Promise<T>): Promise<T> =>
    runTransaction(connections, work, 0)

  async function inChunks<Id>(ids: readonly Id[], statement: string): Promise<Row[]> {
    const rows: Row[] = []
    for (let done = 0; done < ids.length; done += chunk) {
      const some = ids.slice(done, done + chunk)
      rows.push(...(await change((session) => session.run(statement, some))))
    }
    return rows
  }

  /** The faults of a bucket, as of one snapshot. */
  const faultsOf = (id: BucketId): Promise<BucketFault[]> =>
    connections.read(async (session) => {
      await session.execute('BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY')
      try {
        return await bucketFaults(session, id)
      } finally {
        await session.execute('COMMIT')
      }
    })

  return {
    // PostgreSQL has tools of its own for its files: checksums, pg_amcheck.
    damage: async () => ({ details: [], rows: [], bytes: [] }),

    async count() {
      const [row = []] = await run('SELECT count(*), coalesce(sum(size), 0)::int8 FROM media')
      return { items: integer(row, 0), bytes: integer(row, 1) }
    },

    async items(after, limit) {
      const rows = await run(
        `SELECT bucket_id, seq, media.id, size, sha256, (damaged.id IS NOT NULL)::int4, content_id
        FROM media LEFT JOIN damaged ON damaged.id = media.id
        WHERE (bucket_id, seq) > ($1, $2) ORDER BY bucket_id, seq LIMIT $3`,
        after?.bucketId ?? Number.MIN_SAFE_INTEGER,
        after?.seq ?? -1,
        limit,
      )
      return rows.map(readAuditedItem)
    },

    async content(id) {
      const [row] = await run('SELECT bytes FROM contents WHERE id = $1', id)
      return row ? bytes(row, 0) : null
    },

    async orphanedContents() {
      const rows = await run(`SELECT id FROM contents
        WHERE NOT EXISTS (SELECT FROM media WHERE media.content_id = contents.id)`)
      return rows.map((row) => integer(row, 0) as ContentId)
    },

    async removeContents(ids) {
      await inChunks(ids, 'DELETE FROM contents WHERE id = ANY ($1::int8[])')
    },

    async findUnreferenced(ids) {
      return (await run('SELECT unreferenced_ids($1)', ids)).map(mediaId)
    },

    async retire(ids) {
      return (await inChunks(ids, 'SELECT retire_ids($1)')).map(mediaId)
    },

    async markDamaged(ids) {
      await inChunks(
        ids,
        'INSERT INTO damaged (id) SELECT id FROM media WHERE id = ANY ($1::text[]) ON CONFLICT DO NOTHING',
      )
    },

    async unmarkDamaged(ids) {
      await inChunks(ids, 'DELETE FROM damaged WHERE id = ANY ($1::text[])')
    },

    async bucketFaults() {
      const faults: BucketFault[] = []
      for (const id of await connections.read(bucketIds)) faults.push(...(await faultsOf(id)))
      return faults
    },

    async recount() {
      const corrected: BucketFault[] = []
      // Locks out a server's writes only for a bucket that is wrong, and only while it is counted again.
      for (const id of await connections.read(bucketIds))
        if ((await faultsOf(id)).length > 0)
          corrected.push(...(await change((session) => correctBucket(session, id))))
      return corrected
    },

    close: connections.close,
  }
}

const mediaId = (row: Row): MediaId => text(row, 0) as MediaId
