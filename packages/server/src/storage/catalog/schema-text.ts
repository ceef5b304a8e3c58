// Compares the tables of a catalog with the text of the schema: data of one version may have other tables, if a development version wrote them.

/** The definition of each column, constraint and option of each table, by their names, and the statements of other objects. */
export interface SchemaParts {
  readonly tables: ReadonlyMap<string, ReadonlyMap<string, string>>
  /** Indexes, or functions. */
  readonly others: ReadonlyMap<string, string>
}

const withoutComments = (sql: string): string => sql.replaceAll(/--[^\n]*/g, '')

export const normalized = (sql: string): string =>
  withoutComments(sql)
    .replaceAll(/\s+/g, ' ')
    .replaceAll(/ ?([(),]) ?/g, '$1')
    .trim()

/** The texts between the commas that are in no parentheses. */
function listOf(text: string): string[] {
  const parts: string[] = ['']
  let depth = 0
  for (const character of text) {
    if (character === '(') depth += 1
    if (character === ')') depth -= 1
    if (character === ',' && depth === 0) parts.push('')
    else parts.push(`${parts.pop()}${character}`)
  }
  return parts.map((part) => part.trim())
}

/** The columns of a `CREATE TABLE`, its constraints, and what follows its list. */
export function partsOfTable(sql: string): Map<string, string> {
  const text = normalized(sql)
  const [start, end] = [text.indexOf('('), text.lastIndexOf(')')]
  const isColumn = (part: string) => /^[a-z]/.test(part)
  const parts = listOf(text.slice(start + 1, end)).map(
    (part) => [isColumn(part) ? (/^\w+/.exec(part)?.[0] ?? '') : part, part] as const,
  )
  return new Map([...parts, ['its options', text.slice(end + 1).trim()]])
}

/** The name of the first difference: of a table, a column, an index or a function. Null if what the schema has is there, and its tables have no more. */
export function firstDifference(expected: SchemaParts, found: SchemaParts): string | null {
  for (const [table, parts] of expected.tables) {
    const present = found.tables.get(table)
    if (present === undefined) return `the table "${table}" is missing`
    for (const name of new Set([...parts.keys(), ...present.keys()]))
      if (parts.get(name) !== present.get(name)) return `"${name}" of the table "${table}" differs`
  }
  for (const [name, statement] of expected.others)
    if (found.others.get(name) !== statement) return `"${name}" differs`
  return null
}

/** Why data with other tables are refused, and what to do. */
export const otherTablesText = (place: string, version: number, difference: string): string =>
  `${place} has version ${version}, as this mediabucket, but other tables: ${difference}. Another version of the program wrote it, or something else has changed it. ` +
  'Make a backup of it with the mediabucket that wrote it, and restore that with this one; or run that one.'
