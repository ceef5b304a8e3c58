import type { Connections } from './connections.ts'
import { asFault, isConflict } from './postgres-errors.ts'
import type { Session } from './session.ts'

/** Milliseconds. A transaction that waits longer for a lock fails, and so does one whose process stalls. */
export const lockTimeout = 10_000
const statementTimeout = 30_000
const idleTimeout = 30_000

/**
 * Begins a transaction that can write. The settings are of the transaction, because behind a connection pooler a connection has
 * none. On a replica the first change fails (25006); READ WRITE here would fail with 0A000, which says less. A commit is durable
 * whatever the database's default is.
 */
const begin = `BEGIN ISOLATION LEVEL READ COMMITTED;
SET LOCAL lock_timeout = ${lockTimeout}; SET LOCAL statement_timeout = ${statementTimeout};
SET LOCAL idle_in_transaction_session_timeout = ${idleTimeout}; SET LOCAL synchronous_commit = on`

/** Sends the beginning without waiting for its result, which the first statement of the transaction waits for. */
export const beginTransaction = (session: Session, statements = ''): Promise<string> =>
  session.execute(`${begin};${statements}`)

/** The server rolled back a transaction that a statement had failed. */
export class TransactionFailed extends Error {
  override readonly name = 'TransactionFailed'
}

/** Throws TransactionFailed if the server rolled back instead. After any other error the outcome is unknown. */
export async function commitTransaction(session: Session): Promise<void> {
  const command = await session.execute('COMMIT')
  if (command !== 'COMMIT') throw new TransactionFailed(`the server ran ${command} instead of COMMIT`)
}

/** Attempts to run a transaction that failed because of another one. */
const attempts = 4

/**
 * Runs one transaction, for commands; again if it was the victim of a deadlock. Its statements are not limited in time, and each result by
 * `timeout` (ms), if it is given. Other errors are not resolved: the outcome of a commit may be unknown. Throws Fault.
 */
export async function runTransaction<T>(
  connections: Pick<Connections, 'write'>,
  work: (session: Session) => Promise<T>,
  timeout?: number,
): Promise<T> {
  for (let attempt = 1; ; attempt += 1)
    try {
      return await connections.write(async (session) => {
        await beginTransaction(session, 'SET LOCAL statement_timeout = 0')
        const result = await work(session)
        await commitTransaction(session)
        return result
      }, timeout)
    } catch (error) {
      if (attempt === attempts || !isConflict(error)) throw asFault(error)
    }
}
