import type { DatabaseSync } from 'node:sqlite'
import { endsTransaction, isCorrupt, isFull, isIoError } from '../../sqlite/result-codes.ts'
import type { Outcome } from '../../threads/serve-batches.ts'
import { addsItems, type Change, groupAddedItems, type Output } from '../changes.ts'
import type { ApplyChange } from './changes.ts'
import { reclaimSpace } from './reclaim-space.ts'
import { asFault } from './sqlite-errors.ts'
import { begin, commit, rollback } from './transaction.ts'

/**
 * Applies the changes in one transaction. A change that fails is rolled back alone; when the transaction fails, all its
 * changes fail. If a change meets a damaged or unreadable page, each is applied in a transaction of its own. On a full disk it frees
 * space and retries once. Never throws.
 */
export function commitBatch(
  db: DatabaseSync,
  applyChange: ApplyChange,
  changes: readonly Change[],
): Outcome<Output>[] {
  const groups = groupAddedItems(changes)
  let isCommitting = false
  const apply = () => {
    begin(db)
    const [only, ...others] = groups
    const outcomes =
      (only && others.length === 0 ? applyAlone(db, applyChange, only) : null) ??
      groups.flatMap((group) => applyGroup(db, applyChange, group))
    isCommitting = true
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
    if (changes.length > 1 && !isCommitting && (isCorrupt(error) || isIoError(error)))
      return changes.flatMap((change) => commitBatch(db, applyChange, [change]))
    const failed = { error: asFault(error) }
    return changes.map(() => failed)
  }
}

/**
 * Applies the only group of a transaction without a savepoint, which would copy every page that changes. If it fails,
 * begins the transaction again and returns null.
 */
function applyAlone(
  db: DatabaseSync,
  applyChange: ApplyChange,
  group: readonly Change[],
): Outcome<Output>[] | null {
  try {
    const output = applyChange(asOne(group))
    return group.map(() => ({ output }))
  } catch (error) {
    if (endsTransaction(error) || !db.isTransaction) throw error
    begin(db)
    return null
  }
}

/**
 * Applies uploads to one bucket as one change, so that they share a savepoint. If they fail together, applies each alone,
 * so that only those fail that must.
 */
function applyGroup(db: DatabaseSync, applyChange: ApplyChange, group: readonly Change[]): Outcome<Output>[] {
  if (group.length > 1) {
    const outcome = applyInSavepoint(db, applyChange, asOne(group))
    if (!('error' in outcome)) return group.map(() => outcome)
  }
  return group.map((change) => applyInSavepoint(db, applyChange, change))
}

/** The group as one change: a single change, or uploads to one bucket. */
function asOne(group: readonly Change[]): Change {
  const [first, ...others] = group
  if (first === undefined) throw new RangeError('a group has no change')
  if (others.length === 0 || !addsItems(first)) return first
  const items = group.filter(addsItems).flatMap(({ input }) => input.items)
  return { ...first, input: { ...first.input, items } }
}

function applyInSavepoint(db: DatabaseSync, applyChange: ApplyChange, change: Change): Outcome<Output> {
  db.exec('SAVEPOINT change')
  try {
    const output = applyChange(change)
    db.exec('RELEASE change')
    return { output }
  } catch (error) {
    if (endsTransaction(error) || !db.isTransaction) throw error
    db.exec('ROLLBACK TO change; RELEASE change')
    return { error: asFault(error) }
  }
}
