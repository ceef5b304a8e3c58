import { issueToken } from '../packages/server/src/access/token-operations.ts'
import type { Labels } from '../packages/server/src/core/item-labels.ts'
import { defaultScopes } from '../packages/server/src/core/token-rules.ts'
import { createItemCursors } from '../packages/server/src/items/item-list-operations.ts'
import type { Catalog } from '../packages/server/src/storage/catalog/catalog.ts'
import type { ItemDetails, ItemSelection } from '../packages/server/src/storage/catalog/records.ts'

/** A bucket with seeded items and a trash. */
export interface ItemBucket {
  readonly token: string
  readonly items: number
  readonly pages: number
  /** Items at equal distances, from the oldest to the newest. */
  readonly samples: readonly ItemDetails[]
  /** The cursor after each sample, in the order of the list without filters. */
  readonly cursors: Readonly<Record<'oldest' | 'newest', readonly string[]>>
}

/** The labels of seeded items: `one` of one item, `some` of one in a thousand, `most` of nine in ten, and `half` of every second. */
export const labelsOf = (number: number): Labels => ({
  ...(number === 1 ? { one: '' } : {}),
  ...(number % 1_000 === 1 ? { some: '' } : {}),
  ...(number % 10 === 0 ? {} : { most: '' }),
  ...(number % 2 === 1 ? { half: '' } : {}),
})

/** More than the requests of a case that change items. */
const sampleCount = 500

/** Adds a token and a trash to a seeded bucket, and finds out what the requests need. */
export async function describeBucket(catalog: Catalog, bucket: string): Promise<ItemBucket> {
  await catalog.setBucket(bucket, { trashDays: 30 })
  const request = { bucket, name: 'bench', scopes: defaultScopes, expiresAt: null, now: Date.now() }
  const { token } = await issueToken(catalog, request)
  const named = await catalog.findBucketNamed(bucket)
  if (named === null) throw new Error(`there is no bucket ${bucket}`)
  const { id: bucketId, items } = named
  const cursors = createItemCursors(catalog.epoch)
  const count = Math.min(sampleCount, items)
  const samples: ItemDetails[] = []
  const after: Record<'oldest' | 'newest', string[]> = { oldest: [], newest: [] }
  for (let index = 0; index < count; index += 1) {
    const selection = { bucketId, order: 'oldest', kind: null, from: null, to: null, name: null } as const
    // Seeded items have all numbers.
    const place = { seq: Math.floor((index * items) / count), createdAt: 0 }
    const { rows, revision } = await catalog.items(selection satisfies ItemSelection, place, 1)
    const [row] = rows
    if (row === undefined) continue
    samples.push(row.item)
    for (const order of ['oldest', 'newest'] as const)
      after[order].push(
        cursors.format({ ...selection, order }, { seq: row.seq, createdAt: row.item.createdAt }, revision),
      )
  }
  return { token, items, pages: Math.max(1, Math.ceil(items / 10)), samples, cursors: after }
}
