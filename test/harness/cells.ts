import type { CatalogRows } from './rows.ts'

type Value = string | number | bigint | null | Uint8Array | boolean | object

/** A column of the catalog, as the schema declares it. */
export interface Cell {
  readonly table: string
  readonly column: string
  /** Of SQLite or of PostgreSQL, in lower case. */
  readonly type: string
  readonly isNullable: boolean
}

/** A change of one value. */
export interface Damage extends Cell {
  /** A condition that selects the row, before the change. */
  readonly row: string
  /** SQL. */
  readonly from: string
  readonly to: string
}

export const titleOf = ({ table, column, row, to }: Damage): string =>
  `${table}.${column} = ${to.slice(0, 40)} WHERE ${row.slice(0, 80)}`

/** All columns of all tables. */
export async function cellsOf(rows: CatalogRows): Promise<Cell[]> {
  const found = await rows.read(
    rows.engine === 'sqlite'
      ? `SELECT tables.name AS "table", columns.name AS "column", lower(columns.type) AS type,
          columns."notnull" = 0 AND columns.pk = 0 AS nullable
        FROM sqlite_schema AS tables, pragma_table_info(tables.name) AS columns
        WHERE tables.type = 'table' AND tables.name NOT LIKE 'sqlite_%' ORDER BY 1, columns.cid`
      : `SELECT table_name AS "table", column_name AS "column", data_type AS type, is_nullable = 'YES' AS nullable
        FROM information_schema.columns WHERE table_schema = 'public' AND is_identity = 'NO' ORDER BY 1, ordinal_position`,
  )
  return found.map(({ table, column, type, nullable }) => ({
    ...{ table: String(table), column: String(column), type: String(type) },
    isNullable: Boolean(Number(nullable)),
  }))
}

/** The columns of the primary key. */
async function keyOf(rows: CatalogRows, table: string): Promise<string[]> {
  const found = await rows.read(
    rows.engine === 'sqlite'
      ? `SELECT name FROM pragma_table_info('${table}') WHERE pk > 0`
      : `SELECT attname AS name FROM pg_index JOIN pg_attribute ON attrelid = indrelid AND attnum = ANY (indkey)
        WHERE indrelid = '${table}'::regclass AND indisprimary`,
  )
  return found.map(({ name }) => String(name))
}

const isBytes = (value: unknown): value is Uint8Array => value instanceof Uint8Array

/** A value in SQL. */
function literal(engine: CatalogRows['engine'], value: unknown): string {
  if (value === null || value === undefined) return 'NULL'
  if (isBytes(value)) {
    const hex = Buffer.from(value).toString('hex')
    return engine === 'sqlite' ? `X'${hex}'` : `'\\x${hex}'::bytea`
  }
  if (typeof value === 'number' || typeof value === 'bigint') return String(value)
  if (value instanceof Date) return `'${value.toISOString()}'`
  if (Array.isArray(value)) return `'{${value.join()}}'`
  const text = typeof value === 'object' ? JSON.stringify(value) : String(value)
  return `'${text.replaceAll("'", "''")}'`
}

const control = String.fromCharCode(1)

/** Values of a type that a column may get: empty, foreign, too long, of another kind. */
function valuesOf({ type, isNullable }: Cell, engine: CatalogRows['engine']): string[] {
  const values: Value[] =
    /int4|^integer$/.test(type) && engine === 'postgres'
      ? [0, -1, 7, 2 ** 31 - 1]
      : /int/.test(type)
        ? [0, -1, 7, 4_000_000_000_000, 9_007_199_254_740_993n, 9_223_372_036_854_775_807n]
        : /^(text|character varying)$/.test(type)
          ? ['', 'x', 'not {json', '{}', '[]', control, '../../x', 'x'.repeat(100_000), '0'.repeat(26)]
          : /blob|bytea/.test(type)
            ? [new Uint8Array(0), new Uint8Array(1), Uint8Array.of(0xff), new Uint8Array(100_000)]
            : /json/.test(type)
              ? [{}, [], [{}], 7, null].map((value) => JSON.stringify(value))
              : []
  return [...(isNullable ? ['NULL'] : []), ...values.map((value) => literal(engine, value))]
}

/** Changes of each column: of one row of its table, which `pick` chooses, to each of its values, to that of another row; of `meta`, of all rows. */
export async function damagesOf(rows: CatalogRows, pick: (limit: number) => number): Promise<Damage[]> {
  const damages: Damage[] = []
  const keys = new Map<string, string[]>()
  for (const cell of await cellsOf(rows)) {
    const { table, column } = cell
    const key = keys.get(table) ?? (await keyOf(rows, table))
    keys.set(table, key)
    const all = await rows.read(`SELECT * FROM ${table} ORDER BY ${key.join()} LIMIT 50`)
    const picked = all[pick(Math.max(1, all.length))]
    // Each row of this table is a fact of its own.
    const damaged = table === 'meta' ? all : picked === undefined ? [] : [picked]
    const isJson = cell.type === 'json'
    const literalOf = ({ [column]: value }: Record<string, unknown>) =>
      literal(rows.engine, isJson ? JSON.stringify(value) : value)
    for (const found of damaged) {
      const row = key.map((name) => `${name} = ${literal(rows.engine, found[name])}`).join(' AND ')
      const from = literalOf(found)
      const other = all[pick(all.length)]
      const values = new Set([
        ...valuesOf(cell, rows.engine),
        ...(other === undefined ? [] : [literalOf(other)]),
      ])
      for (const to of values) if (to !== from) damages.push({ ...cell, row, from, to })
    }
  }
  return damages
}

/** Makes the change. False if a constraint of the schema forbids it. */
export async function inflict(rows: CatalogRows, { table, column, row, to }: Damage): Promise<boolean> {
  try {
    await rows.change(`UPDATE ${table} SET ${column} = ${to} WHERE ${row}`)
    return true
  } catch {
    return false
  }
}

export async function undo(rows: CatalogRows, { table, column, row, from, to }: Damage): Promise<void> {
  // The row has the new value if that is a part of its key.
  const now = row.replace(`${column} = ${from}`, `${column} = ${to}`)
  await rows.change(`UPDATE ${table} SET ${column} = ${from} WHERE ${now}`).catch((error: unknown) => {
    // The program has written the row again, whose key was another one.
    if (table !== 'meta') throw error
    return rows.change(`DELETE FROM ${table} WHERE ${now}`)
  })
}
