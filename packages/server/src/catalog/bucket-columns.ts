import type { Bucket } from './records.ts'
import { integer, integerOrNull, type Row, text } from './rows.ts'

export const bucketColumns = 'name, total, bytes, reserved_items, reserved_bytes, max_items, max_bytes'

export const bucketOf = (row: Row): Bucket => ({
  name: text(row, 0),
  items: integer(row, 1),
  bytes: integer(row, 2),
  reservedItems: integer(row, 3),
  reservedBytes: integer(row, 4),
  maxItems: integerOrNull(row, 5),
  maxBytes: integerOrNull(row, 6),
})
