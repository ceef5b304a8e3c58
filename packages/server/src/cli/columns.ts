import { textWidth } from './client/terminal-text.ts'

/** The rows as lines, with each column as wide as its widest cell. `right` holds the columns that are aligned right. */
export function columns(
  rows: readonly (readonly string[])[],
  right: ReadonlySet<number> = new Set(),
): string[] {
  const widths = (rows[0] ?? []).map((_, column) =>
    Math.max(...rows.map((row) => textWidth(row[column] ?? ''))),
  )
  const fit = (cell: string, column: number): string => {
    const space = ' '.repeat((widths[column] ?? 0) - textWidth(cell))
    return right.has(column) ? space + cell : cell + space
  }
  return rows.map((row) => row.map(fit).join('  ').trimEnd())
}
