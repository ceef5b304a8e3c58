import type { DatabaseSync } from 'node:sqlite'
import { clearBit, setBit } from '../names/bitmap.ts'
import { blockSize } from '../names/segments.ts'
import type { BucketId } from '../records.ts'
import { bytes } from '../rows.ts'
import { one } from './rows.ts'

/** Records how the items of a bucket differ from the index of names; to be called in the transaction that changes them. */
export interface NameMarks {
  remove(bucketId: BucketId, seqs: readonly number[]): void
  /** Their names have changed, or they were added with earlier numbers. */
  change(bucketId: BucketId, seqs: readonly number[]): void
}

export function prepareNameMarks(db: DatabaseSync): NameMarks {
  const read = db.prepare('SELECT removed, changed FROM name_marks WHERE bucket_id = ? AND block = ?')
  const write = db.prepare(`INSERT INTO name_marks (bucket_id, block, removed, changed) VALUES (?, ?, ?, ?)
    ON CONFLICT DO UPDATE SET removed = excluded.removed, changed = excluded.changed`)

  function mark(bucketId: BucketId, seqs: readonly number[], isRemoved: boolean): void {
    for (const [block, some] of Map.groupBy(seqs, (seq) => Math.floor(seq / blockSize))) {
      const row = one(read, bucketId, block)
      const removed = row ? bytes(row, 0) : new Uint8Array(blockSize / 8)
      const changed = row ? bytes(row, 1) : new Uint8Array(blockSize / 8)
      for (const seq of some) {
        const position = seq % blockSize
        if (isRemoved) {
          setBit(removed, position)
          clearBit(changed, position)
        } else setBit(changed, position)
      }
      write.run(bucketId, block, removed, changed)
    }
  }

  return {
    remove: (bucketId, seqs) => mark(bucketId, seqs, true),
    change: (bucketId, seqs) => mark(bucketId, seqs, false),
  }
}
