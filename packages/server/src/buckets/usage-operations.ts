import { createCursors } from '../core/cursors.ts'
import { Fault } from '../core/faults.ts'
import type { UsageListQuery, UsageQuery } from '../core/usage-queries.ts'
import type { ValueOf } from '../http/openapi/schemas.ts'
import type * as schemas from '../http/openapi/usage-schemas.ts'
import { usageObject } from '../http/usage-object.ts'
import type { Catalog } from '../storage/catalog/catalog.ts'
import type { BucketPlace } from '../storage/catalog/usage.ts'
import { bucketUnknown } from './bucket-operations.ts'

/** The usage of a bucket by day (docs/interface.md US10). `now` is milliseconds since 1970. Throws Fault `bucket-unknown`. */
export async function findUsage(
  catalog: Pick<Catalog, 'findBucketNamed' | 'findUsage'>,
  name: string,
  { from, to }: UsageQuery,
  now: number,
): Promise<ValueOf<typeof schemas.BucketUsage>> {
  const bucket = await catalog.findBucketNamed(name)
  if (bucket === null) throw bucketUnknown(name)
  const days = await catalog.findUsage(bucket.id, from, to, now)
  return { bucket: bucket.name, data: days.map((usage) => usageObject(usage, now)) }
}

/** Lists the usage of all buckets on a day (docs/interface.md US11). The returned function throws Fault `cursor-malformed`. */
export function listUsageOperation({ catalog }: { readonly catalog: Pick<Catalog, 'listUsage' | 'epoch'> }) {
  const cursors = createCursors(catalog.epoch)
  return async function listUsage(
    { day, limit, after }: UsageListQuery,
    now: number,
  ): Promise<ValueOf<typeof schemas.ServiceUsage>> {
    const list = ['usage', day]
    const from = after === null ? null : placeOf(cursors.parse(list, after))
    // One more than requested shows whether buckets follow.
    const found = await catalog.listUsage(day, from, limit + 1, now)
    const listed = found.slice(0, limit)
    const last = listed.at(-1)
    return {
      data: listed.map(({ name, deletedAt, usage }) => ({
        bucket: name,
        deleted_at: deletedAt === null ? null : new Date(deletedAt).toISOString(),
        ...usageObject(usage, now),
      })),
      next_cursor:
        found.length > limit && last !== undefined
          ? cursors.format(list, JSON.stringify([last.name, last.id]))
          : null,
    }
  }
}

/** Throws Fault `cursor-malformed`. */
function placeOf(found: ReturnType<ReturnType<typeof createCursors>['parse']>): BucketPlace {
  const place: unknown = found?.isOwn === true ? JSON.parse(found.place) : null
  const [name, id]: readonly unknown[] = Array.isArray(place) ? place : []
  if (typeof name === 'string' && typeof id === 'number') return { name, id }
  const detail = 'after accepts the next_cursor of a response with the same day, unchanged.'
  throw new Fault('cursor-malformed', detail, { parameters: [{ parameter: 'after', detail }] })
}
