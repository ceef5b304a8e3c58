import { readBucketSettings, settingColumns } from './bucket-settings.ts'
import type { Bucket } from './records.ts'
import { integer, type Row, text } from './rows.ts'

const columns = ['name', 'total', 'bytes', 'reserved_items', 'reserved_bytes', ...settingColumns]

export const bucketColumns = columns.join(', ')
export const bucketColumnCount = columns.length

export const bucketOf = (row: Row): Bucket => ({
  name: text(row, 0),
  items: integer(row, 1),
  bytes: integer(row, 2),
  reservedItems: integer(row, 3),
  reservedBytes: integer(row, 4),
  ...readBucketSettings(row, 5),
})

/** Without the items that have expired: reads `bucketColumns` and `expiredOfBucket`. */
export function liveBucketOf(row: Row): Bucket {
  const bucket = bucketOf(row)
  return {
    ...bucket,
    items: bucket.items - integer(row, bucketColumnCount),
    bytes: bucket.bytes - integer(row, bucketColumnCount + 1),
  }
}
