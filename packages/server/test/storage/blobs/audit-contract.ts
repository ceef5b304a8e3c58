import { randomBytes } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import type { BlobAudit, BlobEntry } from '../../../src/storage/blobs/blobs.ts'
import { thumb } from '../../variant-samples.ts'
import { chunksOf, type OpenedStore, readBytes, receiveBytes, storeBytes } from './blob-contract.ts'
import { plainChunk } from './partial-upload-contract.ts'

export interface AuditedStore extends OpenedStore {
  readonly audit: BlobAudit
}

async function all(audit: BlobAudit): Promise<BlobEntry[]> {
  const found: BlobEntry[] = []
  for await (const one of audit.entries()) found.push(one)
  return found
}

/** The behaviour of every blob engine in a check. */
export function describeBlobAudit(engine: string, openStore: () => Promise<AuditedStore>): void {
  describe(`${engine}: audit`, () => {
    test('F1 every entry of the store is found, with its kind, id and size', async () => {
      await using opened = await openStore()
      const { store, audit } = opened
      expect(await all(audit)).toEqual([])
      const id = await storeBytes(store, randomBytes(100))
      await store.variants.store(id, thumb.key, randomBytes(40))
      await receiveBytes(store, randomBytes(20))
      const upload = await opened.newUpload(60)
      await store.partialUploads.append(upload, plainChunk(0, chunksOf(randomBytes(30))))
      expect(await all(audit)).toMatchObject([
        { kind: 'stored', id, size: 100 },
        { kind: 'variant', id, size: 40 },
        { kind: 'temporary', size: 20 },
        { kind: 'partial', id: upload.id, size: 30 },
      ])
    })

    test('F1 a quarantined entry is no longer in the store, and a second quarantine returns null', async () => {
      await using opened = await openStore()
      const { store, audit } = opened
      const id = await storeBytes(store, randomBytes(100))
      const [found] = await all(audit)
      if (!found) throw new Error('nothing was found')
      expect(await audit.exists(found)).toBe(true)
      expect(await audit.quarantine(found)).toContain(id)
      expect(await audit.exists(found)).toBe(false)
      expect(await audit.quarantine(found)).toBeNull()
      expect([await all(audit), await readBytes(store, id)]).toEqual([[], null])
    })
  })
}
