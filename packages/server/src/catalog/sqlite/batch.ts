import type { DatabaseSync } from 'node:sqlite'
import { endsTransaction, isFull } from '../../sqlite/result-codes.ts'
import type { Outcome } from '../../threads/serve-batches.ts'
import { applyChange, type Change, type ChangeFunctions, type Output } from './changes.ts'
import { reclaimSpace } from './reclaim-space.ts'
import { asFault } from './sqlite-errors.ts'
import { begin, commit, rollback } from './transaction.ts'

/**
 * Applies the changes in one transaction. A change that fails is rolled back alone; when the transaction fails, all its
 * changes fail. On a full disk it frees space and retries once. Never throws.
 */
export function commitBatch(
  db: DatabaseSync,
  functions: ChangeFunctions,
  changes: readonly Change[],
): Outcome<Output>[] {
  const apply = () => {
    begin(db)
    const outcomes = changes.map((change) => applyInSavepoint(db, functions, change))
    commit(db)
    return outcomes
  }
  try {
    try {
      return apply()
    } catch (error) {
      rollback(db)
      if (!isFull(error) || !reclaimSpace(db)) throw error
      return apply()
    }
  } catch (error) {
    rollback(db)
    const failed = { error: asFault(error) }
    return changes.map(() => failed)
  }
}

function applyInSavepoint(db: DatabaseSync, functions: ChangeFunctions, change: Change): Outcome<Output> {
  db.exec('SAVEPOINT change')
  try {
    const output = applyChange(functions, change)
    db.exec('RELEASE change')
    return { output }
  } catch (error) {
    if (endsTransaction(error) || !db.isTransaction) throw error
    db.exec('ROLLBACK TO change; RELEASE change')
    return { error: asFault(error) }
  }
}
