import type { BucketSettings } from './records.ts'
import { integer, integerOrNull, type Row } from './rows.ts'

/** The columns of `buckets` that store the settings. */
const columns: { readonly [Name in keyof BucketSettings]: string } = {
  maxItems: 'max_items',
  maxBytes: 'max_bytes',
  trashDays: 'trash_days',
}

export const settingColumns: readonly string[] = Object.values(columns)

/** Reads the columns `settingColumns`; the first of them has the index `from`. */
export const readBucketSettings = (row: Row, from: number): BucketSettings => ({
  maxItems: integerOrNull(row, from),
  maxBytes: integerOrNull(row, from + 1),
  trashDays: integer(row, from + 2),
})

export interface ColumnValue {
  readonly column: string
  readonly value: number | null
}

/** The columns of the given settings, with their new values. */
export function settingValues(settings: Partial<BucketSettings>): ColumnValue[] {
  return Object.entries(columns).flatMap(([name, column]) => {
    const value = settings[name as keyof BucketSettings]
    return value === undefined ? [] : [{ column, value }]
  })
}
