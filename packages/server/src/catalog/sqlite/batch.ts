import type { DatabaseSync } from 'node:sqlite'
import { endsTransaction, isFull } from '../../sqlite/result-codes.ts'
import type { Outcome } from '../../threads/serve-batches.ts'
import { type Change, groupUploads, isUpload, type Output } from '../changes.ts'
import { applyChange, type ChangeFunctions } from './changes.ts'
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
    const outcomes = groupUploads(changes).flatMap((group) => applyGroup(db, functions, group))
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

/**
 * Applies uploads to one bucket as one change, because a savepoint copies every page that changes in it. If they fail
 * together, applies each alone, so that only those fail that must.
 */
function applyGroup(
  db: DatabaseSync,
  functions: ChangeFunctions,
  group: readonly Change[],
): Outcome<Output>[] {
  const uploads = group.filter(isUpload)
  const [first, ...others] = uploads
  if (first && others.length > 0) {
    const items = uploads.flatMap(({ input }) => input.items)
    const outcome = applyInSavepoint(db, functions, { ...first, input: { ...first.input, items } })
    if (!('error' in outcome)) return group.map(() => outcome)
  }
  return group.map((change) => applyInSavepoint(db, functions, change))
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
