import { firstDifference, normalized, partsOfTable, type SchemaParts } from '../../schema-text.ts'
import { text } from '../../statements.ts'
import type { Session } from './session.ts'

/** The type of a column as PostgreSQL names it: `_int8` for a list. */
const typeOf = (definition: string): string => {
  const [, name = '', list] = /^\w+ (\w+)(\[\])?/.exec(definition) ?? []
  return list === undefined ? name : `_${name}`
}

/** The types of the columns and the bodies of the functions. */
function partsOfSchema(schema: string): SchemaParts {
  const functions = [...schema.matchAll(/CREATE FUNCTION (\w+)\(.*?AS \$\$(.*?)\$\$/gs)].map(
    ([, name = '', body = '']) => [name, normalized(body)] as const,
  )
  const statements = normalized(schema.replaceAll(/AS \$\$.*?\$\$/gs, '')).split(';')
  const tables = statements.flatMap((statement) => {
    const name = /^ ?CREATE TABLE (\w+)/.exec(statement)?.[1]
    if (name === undefined) return []
    const columns = [...partsOfTable(statement)].filter(([column]) => /^[a-z]\w*$/.test(column))
    return [[name, new Map(columns.map(([column, definition]) => [column, typeOf(definition)]))] as const]
  })
  return { tables: new Map(tables), others: new Map(functions) }
}

/** The first difference between the tables and functions of a database and the schema; null if there is none. Further ones are none. */
export async function schemaDifference(session: Session, schema: string): Promise<string | null> {
  const columns = await session.run(`SELECT relname::text, attname::text, typname::text FROM pg_attribute
    JOIN pg_class ON pg_class.oid = attrelid JOIN pg_type ON pg_type.oid = atttypid
    WHERE relkind = 'r' AND relnamespace = current_schema()::regnamespace AND attnum > 0 AND NOT attisdropped`)
  const functions = await session.run(
    'SELECT proname::text, prosrc FROM pg_proc WHERE pronamespace = current_schema()::regnamespace',
  )
  const tables = Map.groupBy(columns, (row) => text(row, 0))
  return firstDifference(partsOfSchema(schema), {
    tables: new Map(
      [...tables].map(([table, rows]) => [table, new Map(rows.map((row) => [text(row, 1), text(row, 2)]))]),
    ),
    others: new Map(functions.map((row) => [text(row, 0), normalized(text(row, 1))])),
  })
}
