import type { DatabaseSync } from 'node:sqlite'
import { keyEvent } from '../audit-log/events.ts'
import type { Changes } from '../changes.ts'
import type { SigningKey } from '../key-catalog.ts'
import { prepareRecordEvents } from './audit-log.ts'

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
  const record = prepareRecordEvents(db)
  const removeAll = db.prepare('DELETE FROM signing_keys')
  return {
    add({ key: { id, secret, createdAt }, onlyFirst, by }) {
      const { changes } = (onlyFirst ? insertFirst : insert).run(id, secret, createdAt)
      if (changes === 1 && by !== undefined) record([keyEvent('key-create', id, by)])
      return undefined
    },
    remove({ id, by }) {
      const isRemoved = remove.run(id).changes === 1
      if (isRemoved && by !== undefined) record([keyEvent('key-remove', id, by)])
      return isRemoved
    },
    replace(keys) {
      removeAll.run()
      for (const { id, secret, createdAt } of keys) insert.run(id, secret, createdAt)
    },
  }
}
