import type { SQLInputValue, StatementSync } from 'node:sqlite'
import type { Row } from '../rows.ts'

/** The first row, or null. Connections return arrays (connection.ts), which the types of node:sqlite do not express. */
export function one(statement: StatementSync, ...parameters: SQLInputValue[]): Row | null {
  const row: unknown = statement.get(...parameters)
  return Array.isArray(row) ? row : null
}

export function all(statement: StatementSync, ...parameters: SQLInputValue[]): Row[] {
  return statement.all(...parameters).map((row: unknown) => {
    if (!Array.isArray(row)) throw new TypeError('the catalog returned a row that is not an array')
    return row
  })
}
