import { setTimeout as sleep } from 'node:timers/promises'
import { Fault } from '../../core/fault.ts'
import { integer } from '../rows.ts'
import type { Connections } from './connections.ts'
import { asFault } from './postgres-errors.ts'
import { beginTransaction, commitTransaction } from './transaction.ts'

/** Milliseconds. Ids of batches are stored for longer (sweepBatches). */
const resolveTimeout = 60_000
const retryInterval = 250

/**
 * Returns whether the batch with this id was committed, after its connection was lost during the commit. Inserts the same id, which
 * waits for the old transaction if it is still in progress, and which prevents its commit if it has not committed. So false means
 * that it never will. Throws if the database cannot be reached in time: the outcome stays unknown.
 *
 * The id is written even if it exists, so that this commit also waits for synchronous standbys. Without a write it would not, and
 * the commit of the batch could be lost in a failover.
 */
export async function wasCommitted(connections: Connections, id: string): Promise<boolean> {
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
export const sweepBatches = (connections: Connections): Promise<void> =>
  connections.write(async (session) => {
    await session.run("DELETE FROM batches WHERE created_at < now() - interval '15 minutes'")
  })
