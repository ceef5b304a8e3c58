import type { DatabaseSync } from 'node:sqlite'
import { firstDifference, normalized, partsOfTable, type SchemaParts } from '../../schema-text.ts'
import { text } from '../../statements.ts'
import { all } from './sqlite-database.ts'

/** SQLite keeps the text of each statement. */
function partsOf(statements: readonly string[]): SchemaParts {
  const named = (kind: RegExp) =>
    statements.flatMap((sql) => {
      const name = kind.exec(sql)?.[1]
      return name === undefined ? [] : [[name, sql] as const]
    })
  return {
    tables: new Map(named(/^CREATE TABLE "?(\w+)/).map(([name, sql]) => [name, partsOfTable(sql)])),
    others: new Map(named(/^CREATE (?:UNIQUE )?INDEX "?(\w+)/)),
  }
}

/** The first difference between the tables of a database and the schema; null if there is none. Further tables and indexes are none. */
export function schemaDifference(db: DatabaseSync, schema: string): string | null {
  const expected = partsOf(
    normalized(schema)
      .split(';')
      .map((sql) => sql.trim()),
  )
  const stored = all(db.prepare('SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL'))
  return firstDifference(expected, partsOf(stored.map((row) => normalized(text(row, 0)))))
}
