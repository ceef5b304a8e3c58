import { type CursorQuery, createParameterReader, oneOf, readCursor, readLimit } from './queries.ts'

/** The orders of a list of buckets. `created` is the order of creation. */
export const bucketOrders = [
  ...(['name', 'name-desc', 'created', 'created-desc'] as const),
  ...(['items', 'items-asc', 'bytes', 'bytes-asc'] as const),
] as const
export type BucketOrder = (typeof bucketOrders)[number]

/** The query of `GET /api/buckets`. */
export interface BucketListQuery extends CursorQuery {
  readonly order: BucketOrder
  /** The first characters of the names; empty for all. */
  readonly prefix: string
}

const isBucketOrder = (text: string): text is BucketOrder => bucketOrders.some((order) => order === text)

/** Throws Fault `parameter-malformed` (docs/interface.md BK2). */
export function parseBucketListQuery(values: Readonly<Record<string, unknown>>): BucketListQuery {
  const reader = createParameterReader(values)
  const query = {
    limit: readLimit(reader),
    after: readCursor(reader),
    order: reader.read<BucketOrder>('order', 'name', oneOf(bucketOrders), (text) =>
      isBucketOrder(text) ? text : null,
    ),
    prefix: reader.read('name', '', 'the first lower-case letters, digits and hyphens of names', (text) =>
      /^[a-z0-9-]{0,63}$/.test(text) ? text : null,
    ),
  }
  reader.finish()
  return query
}

/** The query of `DELETE /api/buckets/{name}`. Throws Fault `parameter-malformed` (docs/interface.md BK10). */
export function parseBucketRemovalQuery(values: Readonly<Record<string, unknown>>): {
  readonly deletesItems: boolean
} {
  const reader = createParameterReader(values)
  const deletesItems = reader.read('items', false, oneOf(['delete']), (text) => text === 'delete' || null)
  reader.finish()
  return { deletesItems }
}
