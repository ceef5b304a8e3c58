import { columns } from './columns.ts'

/** One column of a table. */
export interface Column<Row> {
  readonly header: string
  readonly cell: (row: Row) => string
  /** For numbers. */
  readonly alignRight?: boolean
}

/**
 * The lines of a table. Pass `header` only for a terminal: scripts cut columns out of the lines, and JSON is for the rest.
 */
export function table<Row>(
  shape: readonly Column<Row>[],
  rows: readonly Row[],
  { header }: { readonly header: boolean },
): string[] {
  const cells = rows.map((row) => shape.map(({ cell }) => cell(row)))
  const right = new Set([...shape.keys()].filter((column) => shape[column]?.alignRight))
  return columns(header ? [shape.map(({ header }) => header), ...cells] : cells, right)
}

/** `1 item`, `2 items`, `0 items`. */
export const formatCount = (count: number, singular: string, plural = `${singular}s`): string =>
  `${count} ${count === 1 ? singular : plural}`
