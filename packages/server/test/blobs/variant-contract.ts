import { randomBytes } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import type { BlobStore } from '../../src/blobs/blobs.ts'
import { type MediaId, newMediaId } from '../../src/core/media-id.ts'
import type { Variant } from '../../src/core/variant.ts'
import { type OpenedStore, readBytes, storeBytes } from './blob-contract.ts'

export async function readVariant(store: BlobStore, id: MediaId, variant: Variant): Promise<Buffer | null> {
  const opened = await store.variants.open(id, variant)
  if (opened === null) return null
  return Buffer.concat(await opened.stream(0, opened.size - 1).toArray())
}

/** The behaviour of every blob engine with variants. */
export function describeVariants(engine: string, openStore: () => Promise<OpenedStore>): void {
  describe(`${engine}: variants`, () => {
    test('V5 a variant is stored under its item and its name, and a later one replaces it', async () => {
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

    test('V7 removing the bytes removes their variants, and variants without bytes can be removed', async () => {
      await using opened = await openStore()
      const { store } = opened
      const [id, kept] = [await storeBytes(store, randomBytes(9)), await storeBytes(store, randomBytes(9))]
      const alone = newMediaId()
      for (const one of [id, kept, alone]) await store.variants.store(one, 'thumb', randomBytes(5))
      await store.remove(id)
      await store.variants.remove(alone)
      await store.variants.remove(alone)
      expect(await readVariant(store, id, 'thumb')).toBeNull()
      expect(await readVariant(store, alone, 'thumb')).toBeNull()
      expect(await readVariant(store, kept, 'thumb')).not.toBeNull()
      expect(await readBytes(store, kept)).not.toBeNull()
    })
  })
}
