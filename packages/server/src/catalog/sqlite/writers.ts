import { extname, join } from 'node:path'
import { startBatchThread } from '../../threads/start-batch-thread.ts'
import type { Change, ChangeKind, Output } from '../changes.ts'
import { prepareChanges } from './changes.ts'
import { openConnection } from './connection.ts'
import { explainOpenError } from './open-errors.ts'
import { type SentChange, toSent } from './sent-changes.ts'
import { asFault } from './sqlite-errors.ts'
import { runTransaction } from './transaction.ts'

/** Applies changes durably: a promise resolves once its change is committed and synced. */
export interface Writer {
  apply<K extends ChangeKind>(change: Change<K>): Promise<Output<K>>
  /** Changes that are queued or in progress. */
  pendingCount(): number
  /** Finishes the pending changes and closes the database. */
  close(): Promise<void>
}

/** For commands, whether a server is running or not: each change is a short transaction on this thread. */
export function openDirectWriter(directory: string): Writer {
  const db = openConnection(directory)
  const applyChange = prepareChanges(db)
  return {
    async apply(change) {
      try {
        return runTransaction(db, () => applyChange(change))
      } catch (error) {
        throw asFault(error)
      }
    },
    pendingCount: () => 0,
    async close() {
      if (db.isOpen) db.close()
    },
  }
}

/**
 * For the server: a worker thread commits all changes that have arrived in one transaction. `onFailure` is called once
 * when the thread ends before `close`; `onCommit` receives the seconds of each transaction.
 */
export async function startWriterThread(
  directory: string,
  onFailure: (error: Error) => void,
  onCommit: (seconds: number) => void,
): Promise<Writer> {
  // The extension is .ts in the sources and .js in the published build.
  const file = new URL(`./writer-thread${extname(import.meta.url)}`, import.meta.url)
  const thread = await startBatchThread<SentChange, Output, number>({
    file,
    name: 'catalog-writer',
    workerData: { directory },
    onReport: onCommit,
    onFailure,
  }).catch((error: unknown) => {
    throw explainOpenError(join(directory, 'catalog.db'), error)
  })
  return {
    apply: <K extends ChangeKind>(change: Change<K>) =>
      new Promise<Output<K>>((resolve, reject) => {
        const { sent, transfer } = toSent(change)
        thread.send(sent, { resolve, reject }, transfer)
      }),
    pendingCount: thread.pendingCount,
    close: thread.close,
  }
}
