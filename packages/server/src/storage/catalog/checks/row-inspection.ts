import {
  all,
  type EngineName,
  type Query,
  type Row,
  text,
  textOrNull,
  type Work,
  write,
} from '../statements.ts'
import type { ColumnCheck, TableCheck } from './cell-checks.ts'
import { tableChecks } from './column-checks.ts'

// Compares the columns of all tables with column-checks.ts.

/** A value that the service does not write, or a reference to a row that does not exist. */
export interface RowFault {
  readonly table: string
  readonly column: string
  /** The key of the row. */
  readonly row: string
  /** A reference without which the row is of no use, so that a repair removes the row. */
  readonly isDangling: boolean
}

/** Rows of one read, which is one snapshot. */
const rowsPerRead = 500

/** The columns of a table that the engine has. */
const columnsOf = ({ columns }: TableCheck, engine: EngineName) =>
  Object.entries(columns).filter(([, { only = engine }]) => only === engine)

const keyOf = ({ key }: TableCheck, engine: EngineName): readonly string[] =>
  'sqlite' in key ? key[engine] : key

/** The tables that the engine has. */
export const checkedTables = (engine: EngineName): [string, TableCheck][] =>
  Object.entries(tableChecks).filter(([, { only = engine }]) => only === engine)

/** The value as a text, the number of its bytes, or its bytes in hexadecimal digits. */
const textOf = (table: string, column: string, { reads }: ColumnCheck, engine: EngineName): string => {
  const value = `${table}.${column}`
  const isSqlite = engine === 'sqlite'
  if (reads === 'hex') return isSqlite ? `hex(${value})` : `encode(${value}, 'hex')`
  const length = isSqlite ? 'length' : 'octet_length'
  return `CAST(${reads === 'length' ? `${length}(${value})` : value} AS text)`
}

/** Compares the rows of a table, in batches. */
export async function* wrongRows(
  name: string,
  check: TableCheck,
  engine: EngineName,
  run: <T>(query: Query<T>) => Promise<T>,
): AsyncGenerator<RowFault[]> {
  const columns = columnsOf(check, engine)
  const references = Object.entries(check.references ?? {})
  const keys = keyOf(check, engine)
  const isNumber = (key: string) => check.columns[key]?.reads === 'integer'
  const ordered = keys.map((key) => (isNumber(key) ? `${name}.${key}` : `CAST(${name}.${key} AS text)`))
  const selected = [
    ...keys.map((key) => `CAST(${name}.${key} AS text)`),
    ...columns.map(([column, one]) => textOf(name, column, one, engine)),
    ...references.map(([, condition]) => `CASE WHEN ${condition} THEN '' END`),
  ]
  const statement = (isFirst: boolean) => {
    const after = keys.map((key, index) => `$${index + 1}::text${isNumber(key) ? '::int8' : ''}`)
    const rest = isFirst ? '' : `WHERE (${ordered.join()}) > (${after.join()})`
    return `SELECT ${selected.join()} FROM ${name} ${rest} ORDER BY ${ordered.join()} LIMIT ${rowsPerRead}`
  }
  const read = (row: Row) => {
    const values = columns.map(([column], index) => [column, textOrNull(row, keys.length + index)] as const)
    const wrong = new Set([
      ...columns.flatMap(([column, { isValid }], index) =>
        isValid(values[index]?.[1] ?? null) ? [] : column,
      ),
      ...references.flatMap(([column], index) =>
        row[keys.length + columns.length + index] === null ? column : [],
      ),
    ])
    return {
      key: keys.map((_, index) => text(row, index)),
      wrong,
      isDangling: references.some(
        ([column], index) => column === check.dependsOn && row[keys.length + columns.length + index] === null,
      ),
    }
  }
  for (let last: readonly string[] = []; ; ) {
    const rows = await run(all(read, statement(last.length === 0), ...last))
    yield rows.flatMap(({ key, wrong, isDangling }) =>
      [...wrong].map((column) => ({
        ...{ table: name, column, row: key.map(shorten).join(' ') },
        isDangling: isDangling && column === check.dependsOn,
      })),
    )
    const end = rows.at(-1)
    if (end === undefined || rows.length < rowsPerRead) return
    last = end.key
  }
}

/** Characters of a key in a report. */
const maxKey = 60

const shorten = (key: string): string => (key.length > maxKey ? `${key.slice(0, maxKey)}…` : key)

/** Removes the rows of a table that depend on a row which does not exist, as they are in this transaction. Returns how many. */
export function* removeDangling(name: string): Work<number> {
  const { dependsOn = '', references = {} } = tableChecks[name] ?? {}
  const condition = references[dependsOn]
  return condition === undefined ? 0 : yield* write(`DELETE FROM ${name} WHERE NOT (${condition})`)
}

/** Values that must differ in all rows, and for which no index is worth its cost. */
const distinct: readonly { readonly column: string; readonly sql: string }[] = [
  {
    column: 'content_id',
    sql: `SELECT CAST(content_id AS text) FROM items WHERE content_id IS NOT NULL
      GROUP BY content_id HAVING count(*) > 1 LIMIT ${rowsPerRead}`,
  },
  {
    column: 'home_seq',
    sql: `SELECT CAST(bucket_id AS text) || ' ' || CAST(home_seq AS text) FROM items WHERE bucket_id < 0 AND home_seq IS NOT NULL
      GROUP BY bucket_id, home_seq HAVING count(*) > 1 LIMIT ${rowsPerRead}`,
  },
]

/** Values of items that several items have and one may have. */
export function* repeatedValues(): Query<RowFault[]> {
  const faults: RowFault[] = []
  for (const { column, sql } of distinct)
    for (const value of yield* all((row) => text(row, 0), sql))
      faults.push({ table: 'items', column, row: `${column} ${value} of several items`, isDangling: false })
  return faults
}
