import type { DatabaseSync } from 'node:sqlite'
import type { ItemId } from '../../../core/ids.ts'
import { nameLines, nameSlot, namesPerRow } from '../../../core/names.ts'
import { refreshNames } from '../item-names.ts'
import type { AddedItem, BucketId } from '../records.ts'
import { isTrash } from '../trash.ts'
import { createRun } from './database.ts'

/** Writes the rows of catalog/item-names.ts, which the trash does not have. */
export type Names = ReturnType<typeof prepareNames>

export function prepareNames(db: DatabaseSync) {
  const append = db.prepare(`INSERT INTO item_names (bucket_id, slot, names) VALUES (?1, ?2, ?3 || ?4)
    ON CONFLICT DO UPDATE SET names = names || char(10) || ?4`)
  const clear = db.prepare(`DELETE FROM item_names WHERE bucket_id = ?1 AND slot = ?2 AND NOT EXISTS
    (SELECT 1 FROM items WHERE bucket_id = ?1 AND seq >= ?2 * ${namesPerRow} AND seq < (?2 + 1) * ${namesPerRow})`)
  const run = createRun(db)
  return {
    /** Appends the names of items that are numbered from `firstSeq`. */
    append(bucketId: BucketId, firstSeq: number, items: readonly Pick<AddedItem, 'filename'>[]): void {
      const filenames = items.map(({ filename }) => filename)
      for (const { slot, padding, lines } of nameLines(firstSeq, filenames))
        append.run(bucketId, slot, padding, lines)
    },
    /** To be called after items with these numbers were removed. */
    clear(bucketId: BucketId, seqs: readonly number[]): void {
      if (isTrash(bucketId)) return
      for (const slot of new Set(seqs.map(nameSlot))) clear.run(bucketId, slot)
    },
    /** To be called after these items were restored. */
    refresh: (bucketId: BucketId, ids: readonly ItemId[]): void => run(refreshNames(bucketId, ids)),
  }
}
