import { DatabaseError } from 'pg'
import { Fault } from '../../core/fault.ts'

/** The connection failed, or did not respond in time. What was sent on it may have been executed. */
export class ConnectionLost extends Error {
  override readonly name = 'ConnectionLost'
}

/** The SQLSTATE of an error that PostgreSQL or a connection pooler reported; null for any other error. */
export const sqlState = (error: unknown): string | null =>
  error instanceof DatabaseError ? (error.code ?? null) : null

/**
 * 25006: a primary that became a replica still returns rows, but refuses writes. 25P03, 25P04: the server closed the connection,
 * because its transaction was idle or took too long.
 */
const isDeadState = (state: string | null) => state !== null && /^(08|57P|25006|25P0[34])/.test(state)

/** The connection cannot be used any more. */
export const isDead = (error: unknown): boolean =>
  error instanceof ConnectionLost || isDeadState(sqlState(error))

/** Also for the Fault of such an error. */
export const isUnreachable = (error: unknown): boolean => isDead(error instanceof Fault ? error.cause : error)

/** A connection pooler gave the transaction a server connection that lacks the prepared statement, or has it already. */
export const isUnprepared = (error: unknown): boolean => /^(26000|42P05)$/.test(sqlState(error) ?? '')

/** The transaction conflicted with another one. It can succeed if it is repeated. */
export const isConflict = (error: unknown): boolean => /^(40001|40P01)$/.test(sqlState(error) ?? '')

/** Maps an error after which nothing was changed to a Fault; returns an unexpected error unchanged. */
export function asFault(error: unknown): unknown {
  const state = sqlState(error) ?? ''
  if (state === '53100')
    return new Fault('storage-full', 'The database has no space left on its disk.', { cause: error })
  if (/^53/.test(state))
    return new Fault('overloaded', 'The database has no memory or connection left.', { cause: error })
  if (isDead(error))
    return new Fault('catalog-busy', 'The database cannot be reached; try again.', { cause: error })
  // lock_not_available, query_canceled
  if (isConflict(error) || /^(55P03|57014)$/.test(state))
    return new Fault('catalog-busy', 'The catalog is busy with other work; try again.', { cause: error })
  return error
}
