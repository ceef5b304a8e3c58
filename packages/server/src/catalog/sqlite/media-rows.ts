import type { DatabaseSync } from 'node:sqlite'
import { bucketDeleted } from '../../core/fault.ts'
import type { BucketId, NewMedia } from '../catalog.ts'
import type { Ranks } from './ranks.ts'
import { integer, one } from './rows.ts'

/** The only code that writes media rows. Also updates the bucket's counters, its revision and the ranks. */
export interface MediaRows {
  append(bucketId: BucketId, items: readonly NewMedia[]): void
  /** Removes the items with these sequence numbers, ascending; each must exist. */
  remove(bucketId: BucketId, seqs: readonly number[]): void
}

export function prepareMediaRows(db: DatabaseSync, ranks: Ranks): MediaRows {
  const bucket = db.prepare('SELECT total, next_seq FROM buckets WHERE id = ?')
  const insert = db.prepare(`INSERT INTO media
    (bucket_id, seq, id, extension, filename, content_type, size, sha256, width, height, created_at)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`)
  const remove = db.prepare('DELETE FROM media WHERE bucket_id = ? AND seq = ? RETURNING size')
  const grow = db.prepare(`UPDATE buckets
    SET revision = revision + 1, total = total + ?, bytes = bytes + ?, next_seq = next_seq + ? WHERE id = ?`)

  const bucketState = (bucketId: BucketId) => {
    const row = one(bucket, bucketId)
    if (!row) throw bucketDeleted()
    return { total: integer(row, 0), nextSeq: integer(row, 1) }
  }

  return {
    append(bucketId, items) {
      if (items.length === 0) return
      const { total, nextSeq } = bucketState(bucketId)
      let size = 0
      let seq = nextSeq
      for (const item of items) {
        insert.run(
          bucketId,
          seq++,
          item.id,
          item.extension,
          item.filename,
          item.contentType,
          item.size,
          item.sha256,
          item.width,
          item.height,
          item.createdAt,
        )
        size += item.size
      }
      ranks.add(bucketId, total, nextSeq, items.length)
      grow.run(items.length, size, items.length, bucketId)
    },

    remove(bucketId, seqs) {
      if (seqs.length === 0) return
      const { nextSeq } = bucketState(bucketId)
      let size = 0
      for (const seq of seqs) {
        const row = one(remove, bucketId, seq)
        if (!row) throw new RangeError(`bucket ${bucketId} has no item number ${seq}`)
        size += integer(row, 0)
      }
      ranks.remove(bucketId, nextSeq, seqs)
      grow.run(-seqs.length, -size, 0, bucketId)
    },
  }
}
