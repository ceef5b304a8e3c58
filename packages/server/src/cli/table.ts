import { printableText, textWidth } from './client/terminal-text.ts'

/** One column of a table. */
export interface Column<Row> {
  readonly header: string
  readonly cell: (row: Row) => string
  /** For numbers. */
  readonly alignRight?: boolean
}

/** The lines of a table. Pass `header` only on a terminal, because scripts parse the lines. */
export function table<Row>(
  columns: readonly Column<Row>[],
  rows: readonly Row[],
  { header }: { readonly header: boolean },
): string[] {
  const cells = rows.map((row) => columns.map(({ cell }) => cell(row)))
  const right = new Set([...columns.keys()].filter((column) => columns[column]?.alignRight))
  return alignColumns(header ? [columns.map(({ header }) => header), ...cells] : cells, right)
}

/** Pads each cell to the widest of its column. `right` contains the columns that are aligned right. */
export function alignColumns(
  cells: readonly (readonly string[])[],
  right: ReadonlySet<number> = new Set(),
): string[] {
  const rows = cells.map((row) => row.map(printableText))
  const widths = (rows[0] ?? []).map((_, column) =>
    Math.max(...rows.map((row) => textWidth(row[column] ?? ''))),
  )
  const pad = (cell: string, column: number): string => {
    const space = ' '.repeat((widths[column] ?? 0) - textWidth(cell))
    return right.has(column) ? space + cell : cell + space
  }
  return rows.map((row) => row.map(pad).join('  ').trimEnd())
}

/** `1 item`, `2 items`, `0 items`. */
export const formatCount = (count: number, singular: string, plural = `${singular}s`): string =>
  `${count} ${count === 1 ? singular : plural}`
