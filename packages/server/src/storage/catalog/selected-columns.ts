/** Columns that a statement selects, by the names of their values. */
interface SelectedColumns<Name extends string> {
  /** For the statement, separated by commas. */
  readonly text: string
  /** The place of each value in a row. */
  readonly at: Readonly<Record<Name, number>>
  /** The place after the last one. */
  readonly end: number
}

/** Each column is an expression of SQL. `from` is the number of the columns that the statement selects before these. */
export function selectColumns<Name extends string>(
  columns: Readonly<Record<Name, string>>,
  from = 0,
): SelectedColumns<Name> {
  const names = Object.keys(columns)
  const places = Object.fromEntries(names.map((name, index) => [name, from + index]))
  return {
    text: Object.values(columns).join(', '),
    // It has the names of `columns`.
    at: places as Record<Name, number>,
    end: from + names.length,
  }
}
