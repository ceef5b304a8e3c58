import type { DatabaseSync } from 'node:sqlite'
import type { Changes } from '../changes.ts'
import type { SigningKey } from '../key-catalog.ts'

/** The signing keys; to be called within a transaction. */
export interface KeyRows {
  add(input: Changes['add-key']['input']): undefined
  remove(input: Changes['remove-key']['input']): boolean
  /** Replaces all keys. */
  replace(keys: readonly SigningKey[]): void
}

export function prepareKeyRows(db: DatabaseSync): KeyRows {
  const insert = db.prepare('INSERT INTO signing_keys (id, secret, created_at) VALUES (?, ?, ?)')
  const insertFirst = db.prepare(`INSERT INTO signing_keys (id, secret, created_at)
    SELECT ?, ?, ? WHERE NOT EXISTS (SELECT 1 FROM signing_keys)`)
  const remove = db.prepare('DELETE FROM signing_keys WHERE id = ?')
  const removeAll = db.prepare('DELETE FROM signing_keys')
  return {
    add({ key: { id, secret, createdAt }, onlyFirst }) {
      ;(onlyFirst ? insertFirst : insert).run(id, secret, createdAt)
      return undefined
    },
    remove: ({ id }) => remove.run(id).changes === 1,
    replace(keys) {
      removeAll.run()
      for (const { id, secret, createdAt } of keys) insert.run(id, secret, createdAt)
    },
  }
}
