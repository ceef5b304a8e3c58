import { createHash } from 'node:crypto'
import type { ClientBase, QueryArrayResult } from 'pg'
import type { Row } from '../rows.ts'
import { ConnectionLost, sqlState } from './postgres-errors.ts'
import { types } from './values.ts'

/** Milliseconds that the client waits for a result of a write. Above the timeouts of the server, so that those take effect first. */
const resultTimeout = 45_000

/** One connection, while one piece of work uses it. Throws ConnectionLost, and the errors of the server. */
export interface Session {
  /** Runs one statement with parameters. */
  run(statement: string, ...values: unknown[]): Promise<Row[]>
  /** Runs one statement with parameters; returns the number of rows it changed. */
  change(statement: string, ...values: unknown[]): Promise<number>
  /** Runs statements without parameters, in one message. Returns the name of the last command as the server reports it. */
  execute(statements: string): Promise<string>
}

/** Whether statements are prepared under names; shared by all connections to a database. */
export interface Preparation {
  named: boolean
}

const names = new Map<string, string>()

/** The same name in every process, so that a name never stands for two statements behind a connection pooler. */
function nameOf(statement: string): string {
  let name = names.get(statement)
  if (name === undefined) {
    name = createHash('sha256').update(statement).digest('hex').slice(0, 32)
    names.set(statement, name)
  }
  return name
}

export function openSession(client: ClientBase, preparation: Preparation, timeout = resultTimeout): Session {
  async function send(statement: string, values: unknown[]): Promise<QueryArrayResult<unknown[]>> {
    const query = {
      text: statement,
      values,
      types,
      rowMode: 'array' as const,
      query_timeout: timeout,
      ...(preparation.named && { name: nameOf(statement) }),
    }
    return reporting(client.query(query))
  }
  return {
    async run(statement, ...values) {
      return (await send(statement, values)).rows
    },
    async change(statement, ...values) {
      return (await send(statement, values)).rowCount ?? 0
    },
    async execute(statements) {
      const query = { text: statements, query_timeout: timeout }
      const result: unknown = await reporting(client.query(query))
      const last: unknown = Array.isArray(result) ? result.at(-1) : result
      return isResult(last) ? last.command : ''
    },
  }
}

/** The driver reports lost connections and its own timeouts as plain errors. A RangeError is of a value that was received. */
async function reporting<T>(result: Promise<T>): Promise<T> {
  try {
    return await result
  } catch (error) {
    if (sqlState(error) !== null || error instanceof RangeError) throw error
    throw new ConnectionLost(error instanceof Error ? error.message : String(error), { cause: error })
  }
}

const isResult = (value: unknown): value is { command: string } =>
  typeof value === 'object' && value !== null && 'command' in value && typeof value.command === 'string'
