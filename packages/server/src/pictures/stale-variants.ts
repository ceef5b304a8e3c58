import { createHash } from 'node:crypto'
import type { BucketVariants } from '../core/bucket-pictures.ts'
import type { ItemId } from '../core/ids.ts'
import { isFailureKey, type VariantKey } from '../core/variants.ts'
import type { StoredVariant, VariantStore } from '../storage/blobs/blobs.ts'
import type { Catalog } from '../storage/catalog/catalog.ts'
import type { Item } from '../storage/catalog/records.ts'

/** Variants whose items are read together. */
const perBatch = 100

/** Rest after a batch: a multiple of the time that it took, so that a pass uses about a tenth of a core. */
const restFactor = 9

interface StaleParts {
  readonly catalog: Pick<Catalog, 'item' | 'listPictureOptions' | 'sweptSizes' | 'storeSweptSizes'>
  readonly blobs: { readonly variants: Pick<VariantStore, 'list' | 'removeOne'> }
  readonly variants: BucketVariants
  readonly rest: (milliseconds: number) => Promise<unknown>
}

/** Whether a variant with this key is one that the bucket and the focus of the item have. */
const isCurrent = (variants: BucketVariants, { pictures, focus = null }: Item, key: VariantKey): boolean =>
  isFailureKey(key) || variants.of(pictures).keysWith(focus).includes(key)

/** Removes the stored variants of an item that it no longer has, because its focus has changed. */
export async function removeStaleOf(
  {
    catalog,
    blobs,
    variants,
  }: Pick<StaleParts, 'blobs' | 'variants'> & {
    readonly catalog: Pick<Catalog, 'item'>
  },
  id: ItemId,
): Promise<void> {
  const item = await catalog.item(id)
  if (item === null) return
  for await (const { key } of blobs.variants.list(id))
    if (!isCurrent(variants, item, key)) await blobs.variants.removeOne(id, key)
}

/**
 * Returns a pass over all stored variants, which removes those of sizes that their buckets no longer have, if the sizes of any bucket or of the
 * service have changed since the last pass. Variants without an item are left to `fsck`. Returns how many it has removed.
 */
export function sweepStaleOperation({ catalog, blobs, variants, rest }: StaleParts) {
  async function sweepBatch(batch: readonly StoredVariant[]): Promise<number> {
    const ids = [...new Set(batch.map(({ id }) => id))]
    const items = new Map<ItemId, Item | null>(
      await Promise.all(ids.map(async (id) => [id, await catalog.item(id)] as const)),
    )
    let removed = 0
    for (const { id, key } of batch) {
      const item = items.get(id)
      if (!item || isCurrent(variants, item, key)) continue
      await blobs.variants.removeOne(id, key)
      removed += 1
    }
    return removed
  }

  return async function sweepStale(isStopping: () => boolean): Promise<number> {
    const options = await catalog.listPictureOptions()
    const current = fingerprintOf([variants.service.keys, options])
    if ((await catalog.sweptSizes()) === current) return 0
    let removed = 0
    let batch: StoredVariant[] = []
    for await (const variant of blobs.variants.list()) {
      if (isStopping()) return removed
      batch.push(variant)
      if (batch.length < perBatch) continue
      const startedAt = performance.now()
      removed += await sweepBatch(batch)
      batch = []
      await rest(restFactor * (performance.now() - startedAt))
    }
    removed += await sweepBatch(batch)
    await catalog.storeSweptSizes(current)
    return removed
  }
}

const fingerprintOf = (value: unknown): string =>
  createHash('sha256').update(JSON.stringify(value)).digest('hex').slice(0, 32)
