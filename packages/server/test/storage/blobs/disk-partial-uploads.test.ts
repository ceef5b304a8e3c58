import { createHash, randomBytes } from 'node:crypto'
import { expect, test } from 'vitest'
import { type ItemId, MalformedId, newItemId, newUploadId, type UploadId } from '../../../src/core/ids.ts'
import { type BlobStore, PartialUploadLost } from '../../../src/storage/blobs/blobs.ts'
import { openDiskBlobs } from '../../../src/storage/blobs/disk/disk-blobs.ts'
import { chunksOf, readBytes } from './blob-contract.ts'
import { describePartialUploads, plainChunk } from './partial-upload-contract.ts'
import { temporaryStore } from './temporary-store.ts'

describePartialUploads('the disk', temporaryStore)

const sha256 = (bytes: Uint8Array) => createHash('sha256').update(bytes).digest()

const append = (
  store: BlobStore,
  id: UploadId,
  { offset, source }: { offset: number; source: AsyncIterable<Uint8Array> },
) => store.partialUploads.append({ id, itemId: newItemId(), length: null }, plainChunk(offset, source))

test('R7 bytes past the offset are dropped, and the hash is that of the file', async () => {
  await using opened = await temporaryStore()
  const { partialUploads } = opened.store
  const [id, itemId] = [newUploadId(), newItemId()]
  const bytes = randomBytes(4_000)
  await append(opened.store, id, { offset: 0, source: chunksOf(bytes.subarray(0, 2_000)) })
  await append(opened.store, id, { offset: 2_000, source: chunksOf(randomBytes(9_000)) })
  await append(opened.store, id, { offset: 2_000, source: chunksOf(bytes.subarray(2_000)) })
  const received = await partialUploads.complete(id, 4_000, itemId)
  expect(Buffer.from(received.sha256)).toEqual(sha256(bytes))
  expect(Buffer.from(await (await opened.store.peek(received)).arrayBuffer())).toEqual(bytes)
})

test('R7 the hash has no bytes of a refused chunk that another process has received again', async () => {
  await using opened = await temporaryStore()
  const other = await openDiskBlobs({ directory: opened.directory })
  const [id, itemId] = [newUploadId(), newItemId()]
  const bytes = randomBytes(6_000)
  const refused = chunksOf(randomBytes(4_000), 1_000, new Error('another checksum'))
  await opened.store.partialUploads.append(
    { id, itemId, length: 6_000 },
    { ...plainChunk(0, refused), isAtomic: true },
  )
  await append(other, id, { offset: 0, source: chunksOf(bytes.subarray(0, 4_000)) })
  await append(opened.store, id, { offset: 4_000, source: chunksOf(bytes.subarray(4_000)) })
  const received = await opened.store.partialUploads.complete(id, 6_000, itemId)
  await other.close()
  expect(Buffer.from(await (await opened.store.peek(received)).arrayBuffer())).toEqual(bytes)
  expect(Buffer.from(received.sha256)).toEqual(sha256(bytes))
})

test('an upload with fewer bytes than its offset is lost', async () => {
  await using opened = await temporaryStore()
  const { partialUploads } = opened.store
  const [id, itemId] = [newUploadId(), newItemId()]
  await expect(append(opened.store, id, { offset: 1, source: chunksOf(randomBytes(1)) })).rejects.toThrow(
    PartialUploadLost,
  )
  await append(opened.store, id, { offset: 0, source: chunksOf(randomBytes(5)) })
  await expect(partialUploads.complete(id, 6, itemId)).rejects.toThrow(PartialUploadLost)
  await expect(append(opened.store, id, { offset: 5, source: chunksOf(randomBytes(1)) })).rejects.toThrow(
    PartialUploadLost,
  )
})

test('R6 a committed upload can be reclaimed and continued', async () => {
  await using opened = await temporaryStore()
  const { partialUploads } = opened.store
  const [id, itemId] = [newUploadId(), newItemId()]
  const bytes = randomBytes(3_000)
  await partialUploads.reclaim(id, itemId)
  await append(opened.store, id, { offset: 0, source: chunksOf(bytes) })
  await opened.store.commit([await partialUploads.complete(id, 3_000, itemId)])
  await partialUploads.reclaim(id, itemId)
  await partialUploads.reclaim(id, itemId)
  expect(await opened.store.open(itemId)).toBeNull()
  await opened.store.commit([await partialUploads.complete(id, 3_000, itemId)])
  expect(await readBytes(opened.store, itemId)).toEqual(bytes)
})

test('R6 recovery truncates longer files, reports shorter ones, reclaims committed ones and deletes the rest', async () => {
  await using opened = await temporaryStore()
  const { partialUploads } = opened.store
  const bytes = randomBytes(2_000)
  const ids = Array.from({ length: 5 }, () => ({ id: newUploadId(), itemId: newItemId() }))
  const [long, short, committed, missing, stray] = ids
  if (!long || !short || !committed || !missing || !stray) throw new Error('five ids')
  for (const { id } of [long, short, committed, stray])
    await append(opened.store, id, { offset: 0, source: chunksOf(bytes) })
  await opened.store.commit([await partialUploads.complete(committed.id, 2_000, committed.itemId)])
  const shorter = await opened.store.recovery?.matchUploads([
    { ...long, offset: 1_500 },
    { ...short, offset: 2_500 },
    { ...committed, offset: 1_000 },
    { ...missing, offset: 7 },
    { id: newUploadId(), itemId: newItemId(), offset: 0 },
  ])
  expect(shorter).toEqual(
    new Map([
      [short.id, 2_000],
      [missing.id, 0],
    ]),
  )
  expect(Buffer.from((await partialUploads.complete(long.id, 1_500, long.itemId)).sha256)).toEqual(
    createHash('sha256').update(bytes.subarray(0, 1_500)).digest(),
  )
  expect(await opened.store.open(committed.itemId)).toBeNull()
  expect((await partialUploads.complete(committed.id, 1_000, committed.itemId)).size).toBe(1_000)
  await expect(partialUploads.complete(stray.id, 1, stray.itemId)).rejects.toThrow(PartialUploadLost)
})

test.each(['../../outside', '..', ''])('B8 the upload id %j of a row never becomes a path', async (text) => {
  await using opened = await temporaryStore()
  const { partialUploads } = opened.store
  const [id, itemId] = [text as UploadId, text as ItemId]
  const operations: readonly (() => Promise<unknown>)[] = [
    () => append(opened.store, id, { offset: 0, source: chunksOf(randomBytes(1)) }),
    () => partialUploads.complete(id, 0, newItemId()),
    () => partialUploads.read(id, 0),
    () => partialUploads.remove(id),
    () => partialUploads.reclaim(id, newItemId()),
    () => partialUploads.reclaim(newUploadId(), itemId),
  ]
  for (const operation of operations) await expect(operation()).rejects.toThrow(MalformedId)
})
