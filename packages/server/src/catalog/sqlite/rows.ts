import type { SQLInputValue, SQLOutputValue, StatementSync } from 'node:sqlite'

/** One row as an array, in the order of the selected columns. */
export type Row = readonly SQLOutputValue[]

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

function wrong(row: Row, column: number, wanted: string): never {
  throw new TypeError(`the catalog holds ${typeof row[column]} in column ${column}, not ${wanted}`)
}

export function integer(row: Row, column: number): number {
  const value = row[column]
  return typeof value === 'number' ? value : wrong(row, column, 'an integer')
}

export function text(row: Row, column: number): string {
  const value = row[column]
  return typeof value === 'string' ? value : wrong(row, column, 'text')
}

export function bytes(row: Row, column: number): Uint8Array<ArrayBuffer> {
  const value = row[column]
  return value instanceof Uint8Array ? value : wrong(row, column, 'bytes')
}

export const integerOrNull = (row: Row, column: number): number | null =>
  row[column] === null ? null : integer(row, column)

export const textOrNull = (row: Row, column: number): string | null =>
  row[column] === null ? null : text(row, column)

export const bytesOrNull = (row: Row, column: number): Uint8Array | null =>
  row[column] === null ? null : bytes(row, column)
