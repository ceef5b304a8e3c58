import { Fault } from '../../core/fault.ts'
import type { Change, ChangeKind, Output } from '../changes.ts'
import type { AddedItem } from '../records.ts'
import { commitBatch, type Outcome } from './batch.ts'
import type { Connections } from './connections.ts'
import { sweepBatches } from './resolve-commit.ts'

/** The largest batch: changes, and bytes of contents. */
const batchChanges = 256
const batchBytes = 8 * 1024 * 1024
/** Milliseconds that a change waits before its transaction begins. */
const queueTimeout = 15_000
const expiryInterval = 1_000
const sweepInterval = 120_000

/** Applies changes durably: a promise resolves once its change is committed. */
interface Writer {
  apply<K extends ChangeKind>(change: Change<K>): Promise<Output<K>>
  /** Changes that are queued or in progress. */
  pendingCount(): number
  /** Finishes the pending changes. */
  close(): Promise<void>
}

interface Pending {
  readonly change: Change
  readonly since: number
  readonly settle: (outcome: Outcome) => void
}

/** One transaction at a time: what arrives during a transaction is collected for the next one. */
interface Lane {
  pending: Pending[]
  running: Promise<void> | null
}

/**
 * Additions and removals of one bucket's items use the same lane, so that the bucket's row is locked once for many of them. Other
 * changes use the first lane. `onCommit` receives the seconds of each transaction.
 */
export function openWriter(
  connections: Connections,
  laneCount: number,
  onCommit: (seconds: number) => void,
): Writer {
  const lanes = Array.from({ length: laneCount }, (): Lane => ({ pending: [], running: null }))
  let pendingCount = 0
  let isClosed = false

  async function run(lane: Lane): Promise<void> {
    // After all changes of this iteration of the event loop.
    await new Promise((resolve) => setImmediate(resolve))
    while (lane.pending.length > 0) {
      const batch = takeBatch(lane)
      const start = performance.now()
      const outcomes = await commitBatch(
        connections,
        batch.map(({ change }) => change),
      )
      onCommit((performance.now() - start) / 1000)
      for (const [index, { settle }] of batch.entries())
        settle(outcomes[index] ?? { error: new RangeError('a change of this batch has no outcome') })
    }
    lane.running = null
  }

  /** Rejects changes that have waited too long, for example while the database cannot be reached. None of them was sent. */
  function expire(): void {
    const oldest = performance.now() - queueTimeout
    for (const lane of lanes) {
      const late = lane.pending.filter(({ since }) => since < oldest)
      if (late.length === 0) continue
      lane.pending = lane.pending.filter(({ since }) => since >= oldest)
      for (const { settle } of late)
        settle({ error: new Fault('catalog-busy', 'The database is busy or cannot be reached; try again.') })
    }
  }

  // An error is ignored: the next sweep repeats the work.
  const sweep = setInterval(() => void sweepBatches(connections).catch(() => undefined), sweepInterval)
  const expiry = setInterval(expire, expiryInterval)
  sweep.unref()
  expiry.unref()

  return {
    apply: <K extends ChangeKind>(change: Change<K>) =>
      new Promise<Output<K>>((resolve, reject) => {
        if (isClosed) throw new Error('the catalog is closed')
        pendingCount += 1
        const lane = lanes[laneOf(change) % lanes.length] ?? { pending: [], running: null }
        lane.pending.push({
          change,
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

/** Changes whose bucket is not known by its id use the first lane. */
const laneOf = ({ input }: Change): number => (input !== null && 'bucketId' in input ? input.bucketId : 0)

function takeBatch(lane: Lane): Pending[] {
  let bytes = 0
  let count = 0
  for (const { change } of lane.pending) {
    bytes += sizeOf(change)
    if (count > 0 && (count === batchChanges || bytes > batchBytes || isAlone(change))) break
    count += 1
    if (isAlone(change)) break
  }
  return lane.pending.splice(0, count)
}

/** Such a change locks a table, which could cause a deadlock in a transaction that has locked buckets. */
const isAlone = ({ kind }: Change): boolean => kind === 'retire-intents' || kind === 'settle'

function sizeOf({ input }: Change): number {
  if (input === null) return 0
  if ('stored' in input) return input.stored.piece.byteLength
  const added: readonly AddedItem[] = 'items' in input ? input.items : 'added' in input ? [input.added] : []
  return added.reduce((sum, { bytes }) => sum + (bytes?.byteLength ?? 0), 0)
}
