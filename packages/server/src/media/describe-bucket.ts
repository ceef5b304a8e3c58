import type { Catalog } from '../catalog/catalog.ts'
import type { BucketId } from '../catalog/records.ts'
import { bucketDeleted } from '../core/fault.ts'

/** A bucket as in responses (docs/interface.md Q3). */
export interface BucketObject {
  readonly name: string
  readonly items: number
  readonly bytes: number
  readonly reserved_items: number
  readonly reserved_bytes: number
  readonly max_items: number | null
  readonly max_bytes: number | null
}

export async function describeBucket(
  catalog: Pick<Catalog, 'bucket'>,
  bucketId: BucketId,
): Promise<BucketObject> {
  const bucket = await catalog.bucket(bucketId)
  if (bucket === null) throw bucketDeleted()
  return {
    name: bucket.name,
    items: bucket.items,
    bytes: bucket.bytes,
    reserved_items: bucket.reservedItems,
    reserved_bytes: bucket.reservedBytes,
    max_items: bucket.maxItems,
    max_bytes: bucket.maxBytes,
  }
}
