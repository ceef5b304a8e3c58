import type { DatabaseSync } from 'node:sqlite'
import { applyChange, type Change, type ChangeFunctions, type Output } from './changes.ts'
import { type ErrorRecord, toRecord } from './error-record.ts'
import { makeRoom } from './log-space.ts'
import { endsTransaction, isFull } from './sqlite-errors.ts'
import { begin, commit, rollback } from './transaction.ts'

export interface NumberedChange {
  readonly number: number
  readonly change: Change
}

export type Answer =
  | { readonly number: number; readonly output: Output }
  | { readonly number: number; readonly error: ErrorRecord }

/**
 * Applies the changes in one transaction and commits once. A change that fails is undone alone; when the
 * transaction itself fails, so do all of them. On a full disk it makes room and tries once more. Never throws.
 */
export function commitBatch(
  db: DatabaseSync,
  functions: ChangeFunctions,
  batch: readonly NumberedChange[],
): Answer[] {
  const apply = () => {
    begin(db)
    const answers = batch.map(({ number, change }) => applyAlone(db, functions, number, change))
    commit(db)
    return answers
  }
  try {
    try {
      return apply()
    } catch (error) {
      rollback(db)
      if (!isFull(error) || !makeRoom(db)) throw error
      return apply()
    }
  } catch (error) {
    rollback(db)
    const record = toRecord(error)
    return batch.map(({ number }) => ({ number, error: record }))
  }
}

function applyAlone(db: DatabaseSync, functions: ChangeFunctions, number: number, change: Change): Answer {
  db.exec('SAVEPOINT change')
  try {
    const output = applyChange(functions, change)
    db.exec('RELEASE change')
    return { number, output }
  } catch (error) {
    if (endsTransaction(error) || !db.isTransaction) throw error
    db.exec('ROLLBACK TO change; RELEASE change')
    return { number, error: toRecord(error) }
  }
}
