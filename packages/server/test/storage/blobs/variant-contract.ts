import { randomBytes } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { type ItemId, newItemId } from '../../../src/core/ids.ts'
import { createVariantList, type VariantKey } from '../../../src/core/variants.ts'
import type { BlobStore } from '../../../src/storage/blobs/blobs.ts'
import { medium, thumb } from '../../variant-samples.ts'
import { type OpenedStore, readBytes, storeBytes } from './blob-contract.ts'

export async function readVariant(store: BlobStore, id: ItemId, key: VariantKey): Promise<Buffer | null> {
  const opened = await store.variants.open(id, key)
  if (opened === null) return null
  const bytes = Buffer.alloc(opened.size)
  await opened.read(bytes, 0)
  await opened.close()
  return bytes
}

/** How every blob engine stores variants. */
export function describeVariants(engine: string, openStore: () => Promise<OpenedStore>): void {
  describe(`${engine}: variants`, () => {
    test('V5 an item has one variant of each name; storing the variant again replaces it', async () => {
      await using opened = await openStore()
      const { store } = opened
      const [id, other] = [newItemId(), newItemId()]
      expect(await readVariant(store, id, thumb.key)).toBeNull()
      const [small, large] = [randomBytes(50), randomBytes(70_000)]
      await store.variants.store(id, thumb.key, randomBytes(60))
      await store.variants.store(id, thumb.key, small)
      await store.variants.store(id, medium.key, large)
      expect(await readVariant(store, id, thumb.key)).toEqual(small)
      expect(await readVariant(store, id, medium.key)).toEqual(large)
      expect(await readVariant(store, other, thumb.key)).toBeNull()
    })

    test('V7 a variant is null if the picture that is required is not stored, or has another size', async () => {
      await using opened = await openStore()
      const { store } = opened
      const id = await storeBytes(store, randomBytes(9))
      for (const [variant, size] of [
        [thumb.key, 50],
        [medium.key, 70_000],
      ] as const) {
        await store.variants.store(id, variant, randomBytes(size))
        const openIf = async (pictureSize: number) => {
          const found = await store.variants.open(id, variant, { pictureSize })
          await found?.close()
          return found?.size ?? null
        }
        expect([await openIf(9), await openIf(8)]).toEqual([size, null])
      }
      await store.remove(id)
      await store.variants.store(id, thumb.key, randomBytes(5))
      expect(await store.variants.open(id, thumb.key, { pictureSize: 9 })).toBeNull()
      await store.variants.remove(id)
    })

    test('V5 a variant of up to the given length is returned in memory', async () => {
      await using opened = await openStore()
      const { store } = opened
      const [id, bytes] = [newItemId(), randomBytes(70_000)]
      await store.variants.store(id, medium.key, bytes)
      const found = await store.variants.open(id, medium.key, { wholeUpTo: 70_000 })
      const read = Buffer.alloc(70_000)
      await found?.read(read, 0)
      await found?.close()
      expect(read).toEqual(bytes)
    })

    test('V7 removing an item removes its variants of all sizes, also of those that no longer exist', async () => {
      await using opened = await openStore()
      const { store } = opened
      const [id, other] = [newItemId(), newItemId()]
      const { keys } = createVariantList([{ name: 'earlier', width: 320, height: 200, fit: 'cover' }])
      for (const key of [...keys, thumb.key])
        for (const item of [id, other])
          for (const bytes of [randomBytes(5), randomBytes(70_000)])
            await store.variants.store(item, key, bytes)
      await store.variants.remove(id)
      for (const key of [...keys, thumb.key]) {
        expect(await readVariant(store, id, key)).toBeNull()
        expect(await readVariant(store, other, key)).not.toBeNull()
      }
      await store.variants.remove(other)
    })

    test('V19 variants are listed, of an item and of all, and removed one by one', async () => {
      await using opened = await openStore()
      const { store } = opened
      const ids = [newItemId(), newItemId()]
      const all: string[] = []
      for (const id of ids)
        for (const [{ key }, size] of [
          [thumb, 5],
          [medium, 70_000],
        ] as const) {
          await store.variants.store(id, key, randomBytes(size))
          all.push(`${id}.${key}`)
        }
      const listed = async (id?: ItemId) => {
        const found: string[] = []
        for await (const { id: of, key } of store.variants.list(id)) found.push(`${of}.${key}`)
        return found.filter((name) => ids.some((id) => name.startsWith(id))).toSorted()
      }
      expect(await listed()).toEqual(all.toSorted())
      const [id = newItemId(), other = newItemId()] = ids
      for (const { key } of [thumb, medium]) {
        await store.variants.removeOne(id, key)
        await store.variants.removeOne(id, key)
        expect(await readVariant(store, id, key)).toBeNull()
      }
      expect([await listed(id), (await listed(other)).length]).toEqual([[], 2])
      await store.variants.remove(other)
    })

    test('V7 removing the bytes removes their variants, and variants without bytes can be removed', async () => {
      await using opened = await openStore()
      const { store } = opened
      const [id, other] = [await storeBytes(store, randomBytes(9)), await storeBytes(store, randomBytes(9))]
      const withoutBytes = newItemId()
      for (const item of [id, other, withoutBytes])
        await store.variants.store(item, thumb.key, randomBytes(5))
      await store.remove(id)
      await store.variants.remove(withoutBytes)
      await store.variants.remove(withoutBytes)
      expect(await readVariant(store, id, thumb.key)).toBeNull()
      expect(await readVariant(store, withoutBytes, thumb.key)).toBeNull()
      expect(await readVariant(store, other, thumb.key)).not.toBeNull()
      expect(await readBytes(store, other)).not.toBeNull()
    })
  })
}
