import { hashToken, newToken, service } from '../../src/core/token-rules.ts'
import { intentLog } from '../../src/items/blob-deletion.ts'
import type { MeasurePicture, ReadTaken, RemoveMetadata } from '../../src/pictures/received-pictures.ts'
import type { BlobStore, IntentLog } from '../../src/storage/blobs/blobs.ts'
import type { Files } from '../../src/storage/blobs/disk/files.ts'
import type { Catalog } from '../../src/storage/catalog/catalog.ts'
import { openSqliteCatalog } from '../../src/storage/catalog/engines/sqlite/sqlite-catalog.ts'
import type { BucketId, Item } from '../../src/storage/catalog/records.ts'
import { type IncomingFile, type OnStored, storeOperations } from '../../src/uploads/commit.ts'
import { createFileReceivers, type FileReceiver } from '../../src/uploads/received-files.ts'
import { FreeSpace } from '../../src/uploads/space.ts'
import { chunksOf } from '../storage/blobs/blob-contract.ts'
import { type TemporaryStore, temporaryStore } from '../storage/blobs/temporary-store.ts'

export interface TemporaryData extends AsyncDisposable {
  readonly disk: TemporaryStore
  readonly blobs: BlobStore
  readonly catalog: Catalog
  readonly newReceiver: () => FileReceiver
  /** Measures no picture. */
  readonly measurePicture: MeasurePicture
  readonly removeMetadata: RemoveMetadata
  readonly readTaken: ReadTaken
  readonly onStored: OnStored
  /** Refuses nothing. */
  readonly space: FreeSpace
  /** No backup runs. */
  isBackupRunning(): boolean
  /** Creates the bucket if it does not exist. */
  bucket(name: string): Promise<BucketId>
  /** Stores one text file in the bucket `default`. */
  store(text: string): Promise<Item>
  /** Ids on the first page of the bucket. */
  listed(bucketId: BucketId): Promise<string[]>
}

/** Refuses nothing. */
export const unlimited = new FreeSpace({ readSpaces: () => [], peers: null })

/** A real catalog and a real blob store in their own directory. Files of up to `inlineSize` bytes are stored in the catalog. */
export async function temporaryData(files?: Files, inlineSize = 0): Promise<TemporaryData> {
  const log = (): IntentLog => intentLog(catalog)
  const intents: IntentLog = { record: (ids) => log().record(ids), clear: (ids) => log().clear(ids) }
  const disk = await temporaryStore({ intents, ...(files && { files }) })
  const catalog: Catalog = await openSqliteCatalog({ directory: disk.directory, writer: 'direct' })
  return {
    ...dataOn(catalog, disk.store, inlineSize),
    disk,
    async [Symbol.asyncDispose]() {
      await catalog.close()
      await disk[Symbol.asyncDispose]()
    },
  }
}

/** The same on any engines. */
export function dataOn(
  catalog: Catalog,
  blobs: BlobStore,
  inlineSize: number,
): Omit<TemporaryData, 'disk' | keyof AsyncDisposable> {
  const measurePicture = async () => null
  const readTaken = () => null
  const removeMetadata: RemoveMetadata = async (file) => ({ stored: file, reading: null })
  const onStored = () => undefined
  const newReceiver = createFileReceivers({ blobs, inlineSize })
  const { storeItems } = storeOperations({
    catalog,
    blobs,
    newReceiver,
    measurePicture,
    removeMetadata,
    readTaken,
    onStored,
    space: unlimited,
    maxFileSize: 1e9,
    now: Date.now,
  })
  let tokens = 0

  async function bucket(name: string): Promise<BucketId> {
    const hash = hashToken(newToken())
    tokens += 1
    const id = `tok_${String(tokens).padStart(12, '0')}` as Parameters<Catalog['revokeToken']>[0]
    await catalog.addToken({
      id,
      bucket: name,
      name: 'test',
      hash,
      scopes: [],
      createdAt: 0,
      expiresAt: null,
    })
    const grant = await catalog.findGrant(hash)
    if (grant === null) throw new Error('the token that was just added is unknown')
    return grant.bucketId
  }

  return {
    blobs,
    catalog,
    newReceiver,
    measurePicture,
    removeMetadata,
    readTaken,
    onStored,
    space: unlimited,
    isBackupRunning: () => false,
    bucket,
    async store(text) {
      const { items: stored } = await storeItems(
        { bucketId: await bucket('default'), removesMetadata: false, limits: null },
        incoming(file(Buffer.from(text))),
        { by: service },
      )
      const item = stored[0] && (await catalog.item(stored[0].id))
      if (!item) throw new Error('nothing was stored')
      return item
    },
    async listed(bucketId) {
      const { rows } = await catalog.page(bucketId, 1)
      return rows.map(({ id }) => id)
    },
  }
}

export const file = (
  bytes: Uint8Array,
  filename: string | null = null,
  declaredType: string | null = null,
): IncomingFile => ({ sent: { filename, declaredType }, body: chunksOf(bytes) })

/** Yields the files, then throws `failure` if there is one. */
export async function* incoming(...files: (IncomingFile | Error)[]): AsyncGenerator<readonly IncomingFile[]> {
  for (const item of files) {
    if (item instanceof Error) throw item
    yield [item]
  }
}
