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
  readonly trash_days: number
  readonly trash_items: number
  readonly trash_bytes: number
  readonly private: boolean
  readonly signed_pages: boolean
  readonly remove_metadata: boolean
  readonly item_days: number | null
}

export async function describeBucket(
  catalog: Pick<Catalog, 'bucket' | 'trashState'>,
  bucketId: BucketId,
): Promise<BucketObject> {
  const bucket = await catalog.bucket(bucketId)
  if (bucket === null) throw bucketDeleted()
  const trash = await catalog.trashState(bucketId)
  return {
    name: bucket.name,
    items: bucket.items,
    bytes: bucket.bytes,
    reserved_items: bucket.reservedItems,
    reserved_bytes: bucket.reservedBytes,
    max_items: bucket.maxItems,
    max_bytes: bucket.maxBytes,
    trash_days: trash.days,
    trash_items: trash.items,
    trash_bytes: trash.bytes,
    private: bucket.isPrivate,
    signed_pages: bucket.signedPages,
    remove_metadata: bucket.removesMetadata,
    item_days: bucket.itemDays,
  }
}
