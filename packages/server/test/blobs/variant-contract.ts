import { randomBytes } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import type { BlobStore } from '../../src/blobs/blobs.ts'
import { type MediaId, newMediaId } from '../../src/core/media-id.ts'
import type { Variant } from '../../src/core/variant.ts'
import { type OpenedStore, readBytes, storeBytes } from './blob-contract.ts'

export async function readVariant(store: BlobStore, id: MediaId, variant: Variant): Promise<Buffer | null> {
  const opened = await store.variants.open(id, variant)
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
      const [id, other] = [newMediaId(), newMediaId()]
      expect(await readVariant(store, id, 'thumb')).toBeNull()
      const [thumb, medium] = [randomBytes(50), randomBytes(70_000)]
      await store.variants.store(id, 'thumb', randomBytes(60))
      await store.variants.store(id, 'thumb', thumb)
      await store.variants.store(id, 'medium', medium)
      expect(await readVariant(store, id, 'thumb')).toEqual(thumb)
      expect(await readVariant(store, id, 'medium')).toEqual(medium)
      expect(await readVariant(store, other, 'thumb')).toBeNull()
    })

    test('V7 a variant is null if the picture that is required is not stored, or has another size', async () => {
      await using opened = await openStore()
      const { store } = opened
      const id = await storeBytes(store, randomBytes(9))
      for (const [variant, size] of [
        ['thumb', 50],
        ['medium', 70_000],
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
      await store.variants.store(id, 'thumb', randomBytes(5))
      expect(await store.variants.open(id, 'thumb', { pictureSize: 9 })).toBeNull()
      await store.variants.remove(id)
    })

    test('V5 a variant of up to the given length is returned in memory', async () => {
      await using opened = await openStore()
      const { store } = opened
      const [id, bytes] = [newMediaId(), randomBytes(70_000)]
      await store.variants.store(id, 'medium', bytes)
      const found = await store.variants.open(id, 'medium', { wholeUpTo: 70_000 })
      const read = Buffer.alloc(70_000)
      await found?.read(read, 0)
      await found?.close()
      expect(read).toEqual(bytes)
    })

    test('V7 removing the bytes removes their variants, and variants without bytes can be removed', async () => {
      await using opened = await openStore()
      const { store } = opened
      const [id, other] = [await storeBytes(store, randomBytes(9)), await storeBytes(store, randomBytes(9))]
      const withoutBytes = newMediaId()
      for (const item of [id, other, withoutBytes]) await store.variants.store(item, 'thumb', randomBytes(5))
      await store.remove(id)
      await store.variants.remove(withoutBytes)
      await store.variants.remove(withoutBytes)
      expect(await readVariant(store, id, 'thumb')).toBeNull()
      expect(await readVariant(store, withoutBytes, 'thumb')).toBeNull()
      expect(await readVariant(store, other, 'thumb')).not.toBeNull()
      expect(await readBytes(store, other)).not.toBeNull()
    })
  })
}
