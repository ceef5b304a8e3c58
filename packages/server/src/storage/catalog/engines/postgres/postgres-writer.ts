import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { Fault } from '../../../../core/faults.ts'
import {
  addsItems,
  bucketKeyOf,
  groupAddedItems,
  hasAddedItems,
  isKind,
  joinItems,
  type Output,
  type Write,
  type WriteKind,
} from '../../nouns.ts'
import { integer } from '../../statements.ts'
import {
  beginTransaction,
  type Connections,
  commitTransaction,
  lockTimeout,
  TransactionFailed,
} from './connections.ts'
import {
  applyWrite,
  bucketKeysOf,
  groupByBucket,
  lockBuckets,
  sendItems,
  type Transaction,
} from './postgres-writes.ts'
import {
  asFault,
  isConflict,
  isDead,
  isUnprepared,
  type Session,
  sqlState,
  unknownOutcome,
} from './session.ts'

/** The largest batch: writes, and bytes of contents. */
const batchChanges = 256
const batchBytes = 8 * 1024 * 1024
/** Milliseconds that a write waits before its transaction begins. */
const queueTimeout = 15_000
const expiryInterval = 1_000
const sweepInterval = 120_000

/** Applies writes durably: a promise resolves once its write is committed. */
interface Writer {
  apply<K extends WriteKind>(write: Write<K>): Promise<Output<K>>
  /** Changes that are queued or in progress. */
  pendingCount(): number
  /** Finishes the pending writes. */
  close(): Promise<void>
}

interface Pending {
  readonly write: Write
  readonly since: number
  readonly settle: (outcome: Outcome) => void
}

/** One transaction at a time: what arrives during a transaction is collected for the next one. */
interface Lane {
  pending: Pending[]
  running: Promise<void> | null
}

/**
 * Additions and removals of one bucket's items use the same lane, so that the bucket's row is locked once for many of them. Other writes use the
 * first lane. `fence` is that of `readFence` when the catalog was opened. `onCommit` receives the seconds of each transaction.
 */
export function openWriter(
  connections: Connections,
  fence: number,
  laneCount: number,
  onCommit: (seconds: number) => void,
): Writer {
  const lanes = Array.from({ length: laneCount }, (): Lane => ({ pending: [], running: null }))
  let pendingCount = 0
  let isClosed = false

  async function run(lane: Lane): Promise<void> {
    // After all writes of this iteration of the event loop.
    await new Promise((resolve) => setImmediate(resolve))
    while (lane.pending.length > 0) {
      const batch = takeBatch(lane)
      const start = performance.now()
      const outcomes = await commitBatch(
        connections,
        fence,
        batch.map(({ write }) => write),
      )
      onCommit((performance.now() - start) / 1000)
      for (const [index, { settle }] of batch.entries())
        settle(outcomes[index] ?? { error: new RangeError('a write of this batch has no outcome') })
    }
    lane.running = null
  }

  /** Rejects writes that have waited too long, for example while the database cannot be reached. None of them was sent. */
  function expire(): void {
    const oldest = performance.now() - queueTimeout
    for (const lane of lanes) {
      const late = lane.pending.filter(({ since }) => since < oldest)
      if (late.length === 0) continue
      lane.pending = lane.pending.filter(({ since }) => since >= oldest)
      const cause = new Error(`the transaction did not begin within ${queueTimeout / 1_000} s`)
      for (const { settle } of late)
        settle({
          error: new Fault('catalog-busy', 'The database is busy or cannot be reached; try again.', {
            cause,
          }),
        })
    }
  }

  // An error is ignored: the next sweep repeats the work.
  const sweep = setInterval(() => void sweepBatches(connections).catch(() => undefined), sweepInterval)
  const expiry = setInterval(expire, expiryInterval)
  sweep.unref()
  expiry.unref()

  return {
    apply: <K extends WriteKind>(write: Write<K>) =>
      new Promise<Output<K>>((resolve, reject) => {
        if (isClosed) throw new Error('the catalog is closed')
        pendingCount += 1
        const lane = lanes[laneOf(write) % lanes.length] ?? { pending: [], running: null }
        lane.pending.push({
          write,
          since: performance.now(),
          settle(outcome) {
            pendingCount -= 1
            if ('error' in outcome) reject(outcome.error)
            else resolve(outcome.output as Output<K>)
          },
        })
        lane.running ??= run(lane)
      }),
    pendingCount: () => pendingCount,
    async close() {
      isClosed = true
      clearInterval(sweep)
      clearInterval(expiry)
      await Promise.all(lanes.map(({ running }) => running))
    },
  }
}

/** Changes whose bucket is not known by its id use the first lane. A trash, whose id is negative, has the lane of its bucket. */
function laneOf(write: Write): number {
  const key = bucketKeyOf(write)
  return key !== null && 'bucketId' in key ? Math.abs(key.bucketId) : 0
}

function takeBatch(lane: Lane): Pending[] {
  let bytes = 0
  let count = 0
  for (const { write } of lane.pending) {
    bytes += sizeOf(write)
    if (count > 0 && (count === batchChanges || bytes > batchBytes || isAlone(write))) break
    count += 1
    if (isAlone(write)) break
  }
  return lane.pending.splice(0, count)
}

/** Such a write locks a table, which could cause a deadlock in a transaction that has locked buckets. */
const isAlone = ({ kind }: Write): boolean => kind === 'retireIntents' || kind === 'awaitEarlierWrites'

function sizeOf(write: Write): number {
  if (isKind(write, 'storeParts')) return write.input[1].piece.byteLength
  if (isKind(write, 'finishUpload')) return write.input[1].bytes?.byteLength ?? 0
  if (!hasAddedItems(write)) return 0
  return write.input[1].reduce((sum, { bytes }) => sum + (bytes?.byteLength ?? 0), 0)
}

export type Outcome = { readonly output: Output } | { readonly error: unknown }

/** Attempts to run a batch whose transaction failed because of another transaction or because its connection was lost. */
const attempts = 4
/** Milliseconds. A batch that waited too long for a lock is divided by bucket. The lock timeout of each of these batches. */
const shortLockTimeout = 500

/** The transaction of a group without a savepoint failed because of this write, and was rolled back. */
class GroupFailed extends Error {
  override readonly name = 'GroupFailed'
}

/**
 * Applies the writes in one transaction. If a write fails, only this write is rolled back. If the transaction fails, all its writes
 * fail. If a bucket stays locked, only the writes of this bucket fail. Resolves an ambiguous commit. Never throws.
 */
export async function commitBatch(
  connections: Connections,
  fence: number,
  writes: readonly Write[],
  timeout = lockTimeout,
): Promise<readonly Outcome[]> {
  let groups = groupAddedItems(writes)
  for (let attempt = 1; ; attempt++) {
    const id = randomUUID()
    /** Set when the commit was sent. */
    let sent: readonly Outcome[] | null = null
    try {
      return await connections.write((session) =>
        runBatch(session, beginBatch(id, fence, timeout), groups, (outcomes) => {
          sent = outcomes
        }),
      )
    } catch (error) {
      if (sent !== null && !(error instanceof TransactionFailed || error instanceof GroupFailed)) {
        try {
          if (await wasCommitted(connections, id)) return sent
        } catch (cause) {
          return failAll(writes, unknownOutcome(asFault(cause)))
        }
      }
      if (error instanceof GroupFailed) {
        if (writes.length === 1) return failAll(writes, asFault(error.cause))
        groups = writes.map((write) => [write])
      } else if (sqlState(error) === '55P03') return commitEachBucket(connections, fence, writes, error)
      else if (attempt === attempts || !(isConflict(error) || isDead(error)))
        return failAll(writes, asFault(error))
    }
  }
}

/** Applies the writes in one transaction for each bucket, after one transaction for all buckets failed with `error`. */
async function commitEachBucket(
  connections: Connections,
  fence: number,
  writes: readonly Write[],
  error: unknown,
): Promise<readonly Outcome[]> {
  let parts: readonly Write[][]
  try {
    parts = await connections.read((session) => groupByBucket(session, writes))
  } catch (cause) {
    return failAll(writes, asFault(cause))
  }
  const outcomes = new Map<Write, Outcome>()
  if (parts.length > 1)
    for (const part of parts) {
      const some = await commitBatch(connections, fence, part, shortLockTimeout)
      for (const [index, outcome] of some.entries()) {
        const write = part[index]
        if (write) outcomes.set(write, outcome)
      }
    }
  return writes.map((write) => outcomes.get(write) ?? { error: asFault(error) })
}

const failAll = (writes: readonly Write[], error: unknown): Outcome[] => writes.map(() => ({ error }))

const beginBatch = (id: string, fence: number, timeout: number): string =>
  `SET LOCAL lock_timeout = ${timeout};INSERT INTO batches (id, fence) VALUES ('${id}', ${fence})`

/** Runs the groups in one transaction. Calls `onCommit` before the commit is sent. */
async function runBatch(
  session: Session,
  begin: string,
  groups: readonly (readonly Write[])[],
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
    const sent = sendUploads(transaction, first)
    onCommit(outcomes)
    const [applied, committed] = await Promise.allSettled([sent, commitTransaction(session)])
    if (committed.status === 'fulfilled')
      // The server has executed all that it received. So a result could not be read, or the driver did not send a statement.
      return applied.status === 'fulfilled'
        ? outcomes
        : failAll(first, unknownOutcome(asFault(applied.reason)))
    // The error of the uploads has the cause, and determines whether they are retried one by one. It also causes the error of the commit.
    if (applied.status === 'rejected') throw failureOfGroup(applied.reason)
    throw committed.reason
  }
  const outcomes: Outcome[] = []
  if (groups.length === 1) outcomes.push(...(await applyAlone(transaction, first)))
  else for (const group of groups) outcomes.push(...(await applyInSavepoint(transaction, group)))
  onCommit(outcomes)
  await commitTransaction(session)
  return outcomes
}

/** Applies the only group of a transaction, which needs no savepoint. Throws GroupFailed. */
async function applyAlone(transaction: Transaction, group: readonly Write[]): Promise<readonly Outcome[]> {
  try {
    return await applyGroup(transaction, group)
  } catch (error) {
    throw failureOfGroup(error)
  }
}

const failureOfGroup = (error: unknown): unknown =>
  endsTransaction(error) ? error : new GroupFailed('a write failed', { cause: error })

/** Sends all statements of uploads to one bucket before it returns. Throws GroupFailed, and then has sent none. */
function sendUploads(transaction: Transaction, uploads: readonly Write<'addItems'>[]): Promise<unknown> {
  try {
    const [first] = uploads
    return first === undefined
      ? Promise.resolve()
      : sendItems(transaction, first.input[0], joinItems(uploads))
  } catch (error) {
    throw failureOfGroup(error)
  }
}

async function applyInSavepoint(
  transaction: Transaction,
  group: readonly Write[],
): Promise<readonly Outcome[]> {
  const { session, buckets } = transaction
  const restore = buckets.save()
  try {
    const [, outcomes] = await Promise.all([
      session.execute('SAVEPOINT write'),
      applyGroup(transaction, group),
    ])
    await session.execute('RELEASE write')
    return outcomes
  } catch (error) {
    if (endsTransaction(error)) throw error
    await session.execute('ROLLBACK TO write; RELEASE write')
    restore()
    if (group.length === 1) return [{ error: asFault(error) }]
    const outcomes: Outcome[] = []
    for (const write of group) outcomes.push(...(await applyInSavepoint(transaction, [write])))
    return outcomes
  }
}

/** Applies uploads to one bucket as one write, or a single write of another kind. */
async function applyGroup(transaction: Transaction, group: readonly Write[]): Promise<readonly Outcome[]> {
  const uploads = group.filter(addsItems)
  const [first, ...others] = uploads
  if (first && others.length > 0) {
    const output = await applyWrite(transaction, {
      ...first,
      input: [first.input[0], joinItems(uploads)],
    })
    return group.map(() => ({ output }))
  }
  const outcomes: Outcome[] = []
  for (const write of group) outcomes.push({ output: await applyWrite(transaction, write) })
  return outcomes
}

/** Such an error concerns the whole transaction, not only the write in which it occurred. */
const endsTransaction = (error: unknown): boolean => isDead(error) || isConflict(error) || isUnprepared(error)

/** Milliseconds. Ids of batches are stored for longer (sweepBatches). */
const resolveTimeout = 60_000
const retryInterval = 250

/**
 * Returns whether the batch with this id was committed, after its commit was not confirmed. Inserts the same id, which
 * waits for the old transaction if it is still in progress, and which prevents its commit if it has not committed. So false means
 * that it never will. Throws if the database cannot be reached in time: the outcome stays unknown.
 *
 * The id is written even if it exists, so that this commit also waits for synchronous standbys. Without a write it would not, and
 * the commit of the batch could be lost in a failover.
 */
async function wasCommitted(connections: Connections, id: string): Promise<boolean> {
  const deadline = performance.now() + resolveTimeout
  for (;;) {
    try {
      return await connections.write(async (session) => {
        await beginTransaction(session)
        const [row = []] = await session.run(
          `INSERT INTO batches (id, is_cancelled) VALUES ($1, true)
          ON CONFLICT (id) DO UPDATE SET is_cancelled = batches.is_cancelled RETURNING is_cancelled::int4`,
          id,
        )
        await commitTransaction(session)
        return integer(row, 0) === 0
      })
    } catch (error) {
      if (!(asFault(error) instanceof Fault) || performance.now() >= deadline) throw error
      await sleep(retryInterval)
    }
  }
}

/** Removes the ids of batches that no process can ask for any more. */
const sweepBatches = (connections: Connections): Promise<void> =>
  connections.write(async (session) => {
    await session.run("DELETE FROM batches WHERE created_at < now() - interval '15 minutes'")
  })
