import { randomBytes } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import type { BlobEntry, BlobInspection } from '../../../src/storage/blobs/blobs.ts'
import { thumb } from '../../variant-samples.ts'
import { chunksOf, type OpenedStore, readBytes, receiveBytes, storeBytes } from './blob-contract.ts'
import { plainChunk } from './partial-upload-contract.ts'

export interface AuditedStore extends OpenedStore {
  readonly inspection: BlobInspection
}

async function all(inspection: BlobInspection): Promise<BlobEntry[]> {
  const found: BlobEntry[] = []
  for await (const one of inspection.entries()) found.push(one)
  return found
}

/** The behaviour of every blob engine in a check. */
export function describeBlobAudit(engine: string, openStore: () => Promise<AuditedStore>): void {
  describe(`${engine}: inspection`, () => {
    test('F1 every entry of the store is found, with its kind, id and size', async () => {
      await using opened = await openStore()
      const { store, inspection } = opened
      expect(await all(inspection)).toEqual([])
      const id = await storeBytes(store, randomBytes(100))
      await store.variants.store(id, thumb.key, randomBytes(40))
      await receiveBytes(store, randomBytes(20))
      const upload = await opened.newUpload(60)
      await store.partialUploads.append(upload, plainChunk(0, chunksOf(randomBytes(30))))
      expect(await all(inspection)).toMatchObject([
        { kind: 'stored', id, size: 100 },
        { kind: 'variant', id, size: 40 },
        { kind: 'temporary', size: 20 },
        { kind: 'partial', id: upload.id, size: 30 },
      ])
    })

    test('F1 a quarantined entry is no longer in the store, and a second quarantine returns null', async () => {
      await using opened = await openStore()
      const { store, inspection } = opened
      const id = await storeBytes(store, randomBytes(100))
      const [found] = await all(inspection)
      if (!found) throw new Error('nothing was found')
      expect(await inspection.exists(found)).toBe(true)
      expect(await inspection.quarantine(found)).toContain(id)
      expect(await inspection.exists(found)).toBe(false)
      expect(await inspection.quarantine(found)).toBeNull()
      expect([await all(inspection), await readBytes(store, id)]).toEqual([[], null])
    })
  })
}
