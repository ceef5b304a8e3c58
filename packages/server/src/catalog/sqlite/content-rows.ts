import type { DatabaseSync } from 'node:sqlite'
import type { ContentId } from '../records.ts'
import { bytes } from '../rows.ts'
import { one } from './rows.ts'

/** The bytes of items that are stored in the catalog; to be called within the transaction that changes their rows. */
export interface ContentRows {
  add(bytes: Uint8Array): ContentId
  remove(id: ContentId): void
}

export function prepareContentRows(db: DatabaseSync): ContentRows {
  const insert = db.prepare('INSERT INTO contents (bytes) VALUES (?)')
  const remove = db.prepare('DELETE FROM contents WHERE id = ?')
  return {
    // RETURNING costs a quarter more.
    add: (bytes) => Number(insert.run(bytes).lastInsertRowid) as ContentId,
    remove(id) {
      remove.run(id)
    },
  }
}

/** Reads bytes by id; null if there are none. */
export function prepareReadContent(db: DatabaseSync): (id: ContentId) => Uint8Array<ArrayBuffer> | null {
  const select = db.prepare('SELECT bytes FROM contents WHERE id = ?')
  return (id) => {
    const row = one(select, id)
    return row && bytes(row, 0)
  }
}
