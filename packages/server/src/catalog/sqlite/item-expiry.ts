import type { DatabaseSync } from 'node:sqlite'
import type { BucketId } from '../records.ts'
import { sqliteText } from '../statements.ts'
import { expiryRefresh } from '../trash.ts'

/** As refreshExpiry of trash.ts. */
export function prepareRefreshExpiry(db: DatabaseSync): (bucketId: BucketId) => void {
  const refresh = db.prepare(sqliteText(expiryRefresh.sqlite))
  return (bucketId) => void refresh.run(bucketId)
}
