import type { Row } from '../rows.ts'
import type { EngineChanges, Query, Sql, StatementResult, Work } from '../statements.ts'
import type { Session } from './session.ts'

const noResult: StatementResult = { rows: [], changes: 0 }

/** Runs one statement with parameters. */
export type Run = (statement: string, ...values: unknown[]) => Promise<readonly Row[]>

/** Runs a coroutine that reads. Each of its statements has a snapshot of its own, unless there is a transaction. */
export async function runQuery<T>(run: Run, query: Query<T>): Promise<T> {
  let step = query.next()
  while (!step.done) {
    const text = textOf(step.value.sql)
    const rows = text === null ? [] : await run(text, ...step.value.values)
    step = query.next({ rows, changes: 0 })
  }
  return step.value
}

/** Runs a coroutine in a transaction. Only those of changes need `engine`. */
export async function runWork<T>(session: Session, work: Work<T>, engine?: EngineChanges): Promise<T> {
  let step = work.next()
  while (!step.done) {
    const { value } = step
    let result = noResult
    if (typeof value === 'function') {
      if (engine === undefined) throw new TypeError('a step of a change has no engine')
      await value(engine)
    } else {
      const { sql, values, isChange } = value
      const text = textOf(sql)
      if (text !== null && isChange) result = { rows: [], changes: await session.change(text, ...values) }
      else if (text !== null) result = { rows: await session.run(text, ...values), changes: 0 }
    }
    step = work.next(result)
  }
  return step.value
}

const textOf = (sql: Sql): string | null => (typeof sql === 'string' ? sql : sql.postgres)
