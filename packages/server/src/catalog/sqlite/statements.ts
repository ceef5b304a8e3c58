import type { DatabaseSync, SQLInputValue, StatementSync } from 'node:sqlite'
import type { EngineChanges, EngineStep, SqlValue, Statement, StatementResult, Work } from '../statements.ts'
import { sqliteText } from '../statements.ts'
import { all } from './rows.ts'

const noResult: StatementResult = { rows: [], changes: 0 }

/** Runs coroutines on one connection, which keeps their statements prepared. Only those of changes need `engine`. */
export function createRun(db: DatabaseSync, engine?: EngineChanges): <T>(work: Work<T>) => T {
  const prepared = new Map<string, StatementSync>()

  function prepare(text: string): StatementSync {
    let statement = prepared.get(text)
    if (statement === undefined) {
      statement = db.prepare(sqliteText(text))
      prepared.set(text, statement)
    }
    return statement
  }

  function perform(step: Statement | EngineStep): StatementResult {
    if (typeof step === 'function') {
      if (engine === undefined) throw new TypeError('a step of a change has no engine')
      void step(engine)
      return noResult
    }
    const { sql, isChange } = step
    const text = typeof sql === 'string' ? sql : sql.sqlite
    if (text === null) return noResult
    const values = step.values.map(inputOf)
    if (isChange) return { rows: [], changes: Number(prepare(text).run(...values).changes) }
    return { rows: all(prepare(text), ...values), changes: 0 }
  }

  return (work) => {
    let step = work.next()
    while (!step.done) step = work.next(perform(step.value))
    return step.value
  }
}

const isList = (value: SqlValue): value is readonly number[] | readonly string[] => Array.isArray(value)

const inputOf = (value: SqlValue): SQLInputValue => (isList(value) ? JSON.stringify(value) : value)
