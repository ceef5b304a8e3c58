import type { DatabaseSync } from 'node:sqlite'
import type { MediaId } from '../../core/media-id.ts'
import { integer } from '../rows.ts'
import { one } from './rows.ts'
import { prepareFindUnreferenced } from './unreferenced-ids.ts'

/** The rows of the table `intents`. */
export interface IntentRows {
  add(ids: readonly MediaId[], lifetime: number): void
  clear(ids: readonly MediaId[]): void
  /** As Catalog.retireIntents. */
  retire(ids: readonly MediaId[]): MediaId[]
}

export function prepareIntentRows(db: DatabaseSync): IntentRows {
  const add = db.prepare(`INSERT INTO intents (id, expires_at) VALUES (?, ?)
    ON CONFLICT DO UPDATE SET expires_at = max(expires_at, excluded.expires_at)`)
  const clear = db.prepare('DELETE FROM intents WHERE id = ?')
  const isExpired = db.prepare('SELECT EXISTS (SELECT 1 FROM intents WHERE id = ? AND expires_at <= ?)')
  const retire = db.prepare('INSERT INTO retired (id) VALUES (?) ON CONFLICT DO NOTHING')
  const findUnreferenced = prepareFindUnreferenced(db)

  return {
    add(ids, lifetime) {
      const expiresAt = Date.now() + lifetime
      for (const id of ids) add.run(id, expiresAt)
    },

    clear(ids) {
      for (const id of ids) clear.run(id)
    },

    retire(ids) {
      const now = Date.now()
      const expired = ids.filter((id) => integer(one(isExpired, id, now) ?? [], 0) === 1)
      const retired = findUnreferenced(expired)
      for (const id of retired) retire.run(id)
      return retired
    },
  }
}
