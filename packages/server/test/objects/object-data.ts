import { basename } from 'node:path'
import { onTestFinished } from 'vitest'
import { service } from '../../src/core/token-rules.ts'
import { openBytesOperation } from '../../src/downloads/bytes-cache.ts'
import { deleteBlobs, intentLog } from '../../src/items/blob-deletion.ts'
import { removeExpiredMultiparts } from '../../src/objects/multipart-expiry.ts'
import { type MultipartParts, multipartOperations } from '../../src/objects/multipart-operations.ts'
import { objectOperations, type StoredObject } from '../../src/objects/object-operations.ts'
import type { ObjectCaller } from '../../src/objects/object-types.ts'
import type { BlobStore } from '../../src/storage/blobs/blobs.ts'
import type { Catalog } from '../../src/storage/catalog/catalog.ts'
import { openPostgresCatalog } from '../../src/storage/catalog/engines/postgres/postgres-catalog.ts'
import { storeOperations } from '../../src/uploads/commit.ts'
import { temporaryS3Store } from '../storage/blobs/temporary-s3-store.ts'
import { temporaryStore } from '../storage/blobs/temporary-store.ts'
import { freshCatalog } from '../storage/catalog/postgres-database.ts'
import { dataOn, temporaryData } from '../uploads/temporary-media.ts'

/** A catalog and a store of bytes. */
interface Engines {
  readonly catalog: Catalog
  readonly blobs: BlobStore
  /** Ids of blobs that are stored. */
  readonly stored: () => Promise<string[]>
  readonly close: () => Promise<void>
}

export type OpenEngines = () => Promise<Engines>

/** Bytes of files that are stored in the catalog, at most. */
export const inlineSize = 100

const idsOf = (paths: readonly string[]) => paths.map((path) => basename(path))

async function openSqlite(): Promise<Engines> {
  const data = await temporaryData()
  const { catalog, blobs, disk } = data
  return {
    ...{ catalog, blobs, stored: async () => idsOf(await disk.stored()) },
    async close() {
      await data[Symbol.asyncDispose]()
    },
  }
}

async function openPostgres(): Promise<Engines> {
  const catalog = await openPostgresCatalog({ url: await freshCatalog(), role: 'server' })
  const disk = await temporaryStore({ intents: intentLog(catalog) })
  return {
    ...{ catalog, blobs: disk.store, stored: async () => idsOf(await disk.stored()) },
    async close() {
      await catalog.close()
      await disk[Symbol.asyncDispose]()
    },
  }
}

async function openPostgresAndS3(): Promise<Engines> {
  const catalog = await openPostgresCatalog({ url: await freshCatalog(), role: 'server' })
  const opened = await temporaryS3Store({ catalog })
  return {
    ...{ catalog, blobs: opened.store },
    async stored() {
      const keys: string[] = []
      for await (const { key } of opened.calls.list(opened.location.prefix)) keys.push(key)
      return idsOf(keys)
    },
    async close() {
      await opened[Symbol.asyncDispose]()
      await catalog.close()
    },
  }
}

/** Those on which the operations of objects are tested. */
export const engines: readonly (readonly [name: string, open: OpenEngines])[] = [
  ['SQLite and the disk', openSqlite],
  ['PostgreSQL and the disk', openPostgres],
  ['PostgreSQL and S3', openPostgresAndS3],
]

export type OpenedObjects = Awaited<ReturnType<typeof openObjects>>

/** Data with a bucket, and the operations of two processes on them. */
export async function openObjects(openEngines: OpenEngines) {
  const { catalog, blobs, stored, close } = await openEngines()
  const data = dataOn(catalog, blobs, inlineSize)
  const deletions: Promise<unknown>[] = []
  onTestFinished(async () => {
    await Promise.all(deletions)
    await close()
  })
  const bucketId = await data.bucket('b')
  const deleteLater: MultipartParts['deleteLater'] = (ids) => {
    deletions.push(
      deleteBlobs(
        {
          ...{ catalog, blobs, isBackupRunning: () => false },
          onDeletionFailure(_, error) {
            throw error
          },
        },
        ids,
      ),
    )
  }
  let time = 1_790_000_000_000
  const parts = { ...data, openBytes: openBytesOperation({ catalog, blobs }), deleteLater, maxFileSize: 1e9 }
  const operationsOf = () => {
    const uploading = { ...parts, expiry: 1_000, now: () => time }
    return multipartOperations({ ...uploading, ...storeOperations(uploading) })
  }
  const stores = storeOperations({ ...parts, now: Date.now })
  const caller: ObjectCaller = {
    ...{ bucketId, tokenId: 'tok_000000000000' as ObjectCaller['tokenId'], actor: service },
    scopes: new Set(['media:read', 'media:write', 'media:delete'] as const),
    ...{
      expiresAt: null,
      revokedAt: null,
      lastUsedAt: null,
      subject: null,
      revision: 0,
      expired: 0,
      total: 0,
    },
    ...{ isPrivate: false, nextExpiry: null, itemDays: null, limits: null, fileLimits: null },
    ...{ signsPages: false, removesMetadata: false, publicKeys: false, urlUploads: true, pictures: null },
  }
  return {
    ...{ catalog, caller, bucketId },
    first: operationsOf(),
    second: operationsOf(),
    objects: objectOperations({ ...parts, storeFile: stores.storeFile, now: Date.now }),
    advance: (by: number) => {
      time += by
    },
    sweep: () => removeExpiredMultiparts({ catalog, deleteLater, now: () => time }),
    async bytesOf({ item }: StoredObject) {
      const stored = await catalog.item(item.id)
      if (stored === null) throw new Error('the item is missing')
      const blob = await parts.openBytes(stored)
      return Buffer.concat(await blob.stream(0, item.size - 1).toArray())
    },
    /** Ids of blobs that are stored, when deletions have ended. */
    async stored() {
      await Promise.all(deletions.splice(0))
      return stored()
    },
  }
}
