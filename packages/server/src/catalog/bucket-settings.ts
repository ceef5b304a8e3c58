import type { BucketSettings } from './records.ts'
import { integer, integerOrNull, type Row } from './rows.ts'

/** The columns of `buckets` that store the settings. */
const columns: { readonly [Name in keyof BucketSettings]: string } = {
  maxItems: 'max_items',
  maxBytes: 'max_bytes',
  trashDays: 'trash_days',
  isPrivate: 'private',
  signedPages: 'signed_pages',
  removesMetadata: 'remove_metadata',
  itemDays: 'item_days',
}

export const settingColumns: readonly string[] = Object.values(columns)

/** Reads the columns `settingColumns`; the first of them has the index `from`. */
export const readBucketSettings = (row: Row, from: number): BucketSettings => ({
  maxItems: integerOrNull(row, from),
  maxBytes: integerOrNull(row, from + 1),
  trashDays: integer(row, from + 2),
  isPrivate: integer(row, from + 3) === 1,
  signedPages: integer(row, from + 4) === 1,
  removesMetadata: integer(row, from + 5) === 1,
  itemDays: integerOrNull(row, from + 6),
})

/** Those of the new settings that differ from the current ones. */
export const changedSettings = (
  current: BucketSettings,
  settings: Partial<BucketSettings>,
): Partial<BucketSettings> =>
  Object.fromEntries(
    Object.entries(settings).filter(([name, value]) => current[name as keyof BucketSettings] !== value),
  )

export interface ColumnValue {
  readonly column: string
  readonly value: number | null
}

/** The columns of the given settings, with their new values. */
export function settingValues(settings: Partial<BucketSettings>): ColumnValue[] {
  return Object.entries(columns).flatMap(([name, column]) => {
    const value = settings[name as keyof BucketSettings]
    if (value === undefined) return []
    return [{ column, value: typeof value === 'boolean' ? Number(value) : value }]
  })
}
