import { auditActions } from '../../packages/server/src/storage/catalog/audit/audit-events.ts'
import { rowsIn } from './check-leftovers.ts'
import type { Ledger } from './ledger.ts'

// The usage of a bucket, compared with the audit log (docs/interface.md US2, US8).

const idOf = (bucket: string) => `(SELECT id FROM buckets WHERE name = '${bucket}')`

const numbersIn = async (directory: string, statement: string): Promise<Record<string, number>> => {
  const [row = {}] = await rowsIn(directory, statement)
  return Object.fromEntries(Object.entries(row).map(([name, value]) => [name, Number(value)]))
}

/** What all days have added and removed, also the open one. */
const changesIn = (directory: string, bucket: string) =>
  numbersIn(
    directory,
    `SELECT sum(added_items) AS added_items, sum(added_bytes) AS added_bytes, sum(removed_items) AS removed_items,
      sum(removed_bytes) AS removed_bytes FROM (
      SELECT added_items, added_bytes, removed_items, removed_bytes FROM bucket_usage WHERE bucket_id = ${idOf(bucket)}
      UNION ALL SELECT added_items, added_bytes, removed_items, removed_bytes FROM buckets WHERE name = '${bucket}') AS days`,
  )

const eventsIn = (directory: string, bucket: string, action: number, since = 0) =>
  numbersIn(
    directory,
    `SELECT count(*) AS items, coalesce(sum(size), 0) AS bytes FROM audit_events
    WHERE action = ${action} AND bucket_id = ${idOf(bucket)} AND time >= ${since}`,
  )

/** The downloads of all days that are written. */
const downloadsIn = (directory: string, bucket: string) =>
  numbersIn(
    directory,
    `SELECT coalesce(sum(download_requests), 0) AS items, coalesce(sum(downloaded_bytes), 0) AS bytes FROM bucket_usage
    WHERE bucket_id = ${idOf(bucket)}`,
  )

/**
 * To be called after the last kill, before a start. The returned function is to be called when that process was stopped: items and bytes are exactly those
 * of the audit log, whenever processes were killed, and the downloads of the last process too. The audit log has no requests of HEAD.
 */
export async function watchUsage(
  directory: string,
  ledger: Pick<Ledger, 'fault'>,
  { bucket = 'default', hasHeads = false } = {},
): Promise<() => Promise<void>> {
  const [before, since] = [await downloadsIn(directory, bucket), Date.now()]
  return async () => {
    const compare = (what: string, counted: number | undefined, recorded: number | undefined) => {
      if (counted !== recorded)
        ledger.fault('halfVisible', `usage has ${counted} ${what}, the audit log ${recorded}`)
    }
    const changes = await changesIn(directory, bucket)
    const uploads = await eventsIn(directory, bucket, auditActions.upload)
    const deletes = await eventsIn(directory, bucket, auditActions.delete)
    compare('added items', changes['added_items'], uploads['items'])
    compare('added bytes', changes['added_bytes'], uploads['bytes'])
    compare('removed items', changes['removed_items'], deletes['items'])
    compare('removed bytes', changes['removed_bytes'], deletes['bytes'])
    const [after, recorded] = [
      await downloadsIn(directory, bucket),
      await eventsIn(directory, bucket, auditActions.download, since),
    ]
    if (!hasHeads) compare('downloads', Number(after['items']) - Number(before['items']), recorded['items'])
    compare('downloaded bytes', Number(after['bytes']) - Number(before['bytes']), recorded['bytes'])
  }
}
