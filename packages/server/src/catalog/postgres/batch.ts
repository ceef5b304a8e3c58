import { randomUUID } from 'node:crypto'
import { Fault } from '../../core/fault.ts'
import { addsItems, type Change, groupAddedItems, type Output } from '../changes.ts'
import { applyChange } from './changes.ts'
import type { Connections } from './connections.ts'
import { bucketKeysOf, groupByBucket, lockBuckets } from './locked-buckets.ts'
import type { Transaction } from './media-rows.ts'
import { asFault, isConflict, isDead, isUnprepared, sqlState } from './postgres-errors.ts'
import { wasCommitted } from './resolve-commit.ts'
import type { Session } from './session.ts'
import { beginTransaction, commitTransaction, lockTimeout, TransactionFailed } from './transaction.ts'

export type Outcome = { readonly output: Output } | { readonly error: unknown }

/** Attempts to run a batch whose transaction failed because of another transaction or because its connection was lost. */
const attempts = 4
/** Milliseconds. A batch that waited too long for a lock is divided by bucket. The lock timeout of each of these batches. */
const shortLockTimeout = 500

/** The transaction of a group without a savepoint failed because of this change, and was rolled back. */
class GroupFailed extends Error {
  override readonly name = 'GroupFailed'
}

/**
 * Applies the changes in one transaction. If a change fails, only this change is rolled back. If the transaction fails, all its changes
 * fail. If a bucket stays locked, only the changes of this bucket fail. Resolves an ambiguous commit. Never throws.
 */
export async function commitBatch(
  connections: Connections,
  changes: readonly Change[],
  timeout = lockTimeout,
): Promise<readonly Outcome[]> {
  let groups = groupAddedItems(changes)
  for (let attempt = 1; ; attempt++) {
    const id = randomUUID()
    /** Set when the commit was sent. */
    let sent: readonly Outcome[] | null = null
    try {
      return await connections.write((session) =>
        runBatch(session, beginBatch(id, timeout), groups, (outcomes) => {
          sent = outcomes
        }),
      )
    } catch (error) {
      if (sent !== null && !(error instanceof TransactionFailed || error instanceof GroupFailed)) {
        try {
          if (await wasCommitted(connections, id)) return sent
        } catch (cause) {
          return failAll(changes, unknownOutcome(cause))
        }
      }
      if (error instanceof GroupFailed) {
        if (changes.length === 1) return failAll(changes, asFault(error.cause))
        groups = changes.map((change) => [change])
      } else if (sqlState(error) === '55P03') return commitEachBucket(connections, changes, error)
      else if (attempt === attempts || !(isConflict(error) || isDead(error)))
        return failAll(changes, asFault(error))
    }
  }
}

/** Applies the changes in one transaction for each bucket, after one transaction for all buckets failed with `error`. */
async function commitEachBucket(
  connections: Connections,
  changes: readonly Change[],
  error: unknown,
): Promise<readonly Outcome[]> {
  let parts: readonly Change[][]
  try {
    parts = await connections.read((session) => groupByBucket(session, changes))
  } catch (cause) {
    return failAll(changes, asFault(cause))
  }
  const outcomes = new Map<Change, Outcome>()
  if (parts.length > 1)
    for (const part of parts) {
      const some = await commitBatch(connections, part, shortLockTimeout)
      for (const [index, outcome] of some.entries()) {
        const change = part[index]
        if (change) outcomes.set(change, outcome)
      }
    }
  return changes.map((change) => outcomes.get(change) ?? { error: asFault(error) })
}

const failAll = (changes: readonly Change[], error: unknown): Outcome[] => changes.map(() => ({ error }))

/** The code is not `catalog-busy`, because the operations remove the bytes of an upload that failed with that code. */
const unknownOutcome = (cause: unknown): Fault =>
  new Fault('overloaded', 'The database did not confirm this change: it may or may not be stored.', { cause })

const beginBatch = (id: string, timeout: number): string =>
  `SET LOCAL lock_timeout = ${timeout};INSERT INTO batches (id) VALUES ('${id}')`

/** Runs the groups in one transaction. Calls `onCommit` before the commit is sent. */
async function runBatch(
  session: Session,
  begin: string,
  groups: readonly (readonly Change[])[],
  onCommit: (outcomes: readonly Outcome[]) => void,
): Promise<readonly Outcome[]> {
  // Both are sent without waiting for the result of the first.
  const [, buckets] = await Promise.all([
    beginTransaction(session, begin),
    lockBuckets(session, bucketKeysOf(groups.flat())),
  ])
  const transaction = { session, buckets }
  const [first = []] = groups
  if (groups.length === 1 && first.every(addsItems)) {
    // The outcomes of successful uploads are known in advance, so the commit is sent together with the uploads. After an error, the
    // server rolls back instead.
    const outcomes = first.map(() => ({ output: undefined }))
    onCommit(outcomes)
    const [applied, committed] = await Promise.allSettled([
      applyAlone(transaction, first),
      commitTransaction(session),
    ])
    // The error of the uploads has the cause, and determines whether they are retried one by one. It also causes the error of the commit.
    if (applied.status === 'rejected') throw applied.reason
    if (committed.status === 'rejected') throw committed.reason
    return outcomes
  }
  const outcomes: Outcome[] = []
  if (groups.length === 1) outcomes.push(...(await applyAlone(transaction, first)))
  else for (const group of groups) outcomes.push(...(await applyInSavepoint(transaction, group)))
  onCommit(outcomes)
  await commitTransaction(session)
  return outcomes
}

/** Applies the only group of a transaction, which needs no savepoint. Throws GroupFailed. */
async function applyAlone(transaction: Transaction, group: readonly Change[]): Promise<readonly Outcome[]> {
  try {
    return await applyGroup(transaction, group)
  } catch (error) {
    if (endsTransaction(error)) throw error
    throw new GroupFailed('a change failed', { cause: error })
  }
}

async function applyInSavepoint(
  transaction: Transaction,
  group: readonly Change[],
): Promise<readonly Outcome[]> {
  const { session, buckets } = transaction
  const restore = buckets.save()
  try {
    const [, outcomes] = await Promise.all([
      session.execute('SAVEPOINT change'),
      applyGroup(transaction, group),
    ])
    await session.execute('RELEASE change')
    return outcomes
  } catch (error) {
    if (endsTransaction(error)) throw error
    await session.execute('ROLLBACK TO change; RELEASE change')
    restore()
    if (group.length === 1) return [{ error: asFault(error) }]
    const outcomes: Outcome[] = []
    for (const change of group) outcomes.push(...(await applyInSavepoint(transaction, [change])))
    return outcomes
  }
}

/** Applies uploads to one bucket as one change, or a single change of another kind. */
async function applyGroup(transaction: Transaction, group: readonly Change[]): Promise<readonly Outcome[]> {
  const uploads = group.filter(addsItems)
  const [first, ...others] = uploads
  if (first && others.length > 0) {
    const items = uploads.flatMap(({ input }) => input.items)
    const output = await applyChange(transaction, { ...first, input: { ...first.input, items } })
    return group.map(() => ({ output }))
  }
  const outcomes: Outcome[] = []
  for (const change of group) outcomes.push({ output: await applyChange(transaction, change) })
  return outcomes
}

/** Such an error concerns the whole transaction, not only the change in which it occurred. */
const endsTransaction = (error: unknown): boolean => isDead(error) || isConflict(error) || isUnprepared(error)
