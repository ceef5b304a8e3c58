import { applyChange, prepareChanges } from './changes.ts'
import { openConnection } from './connection.ts'
import { asFault } from './sqlite-errors.ts'
import { immediate } from './transaction.ts'
import type { Writer } from './writer.ts'

/** For commands, beside a running server or without one: each change is a short transaction on this thread. */
export function openDirectWriter(directory: string): Writer {
  const db = openConnection(directory)
  const functions = prepareChanges(db)
  return {
    async apply(change) {
      try {
        return immediate(db, () => applyChange(functions, change))
      } catch (error) {
        throw asFault(error)
      }
    },
    waiting: () => 0,
    async close() {
      if (db.isOpen) db.close()
    },
  }
}
