import { createHash, randomBytes } from 'node:crypto'
import { buffer } from 'node:stream/consumers'
import { describe, expect, test } from 'vitest'
import { newItemId } from '../../../src/core/ids.ts'
import { createIntentSweep, intentLog } from '../../../src/items/blob-deletion.ts'
import { EntryUnmovable, PartialUploadLost } from '../../../src/storage/blobs/blobs.ts'
import { HeldIntents, type Part, PartMemory } from '../../../src/storage/blobs/s3/object-uploads.ts'
import { openS3Inspection } from '../../../src/storage/blobs/s3/s3-inspection.ts'
import { S3PartialUploads } from '../../../src/storage/blobs/s3/s3-partial-uploads.ts'
import { partLog } from '../../../src/uploads/resumable-uploads.ts'
import { inBlobStore, newBucket, newItem } from '../catalog/samples.ts'
import { chunksOf, describeBlobStore, readBytes, receiveBytes, storeBytes } from './blob-contract.ts'
import { describePartialUploads, plainChunk } from './partial-upload-contract.ts'
import { type TemporaryS3Store, temporaryS3Store } from './temporary-s3-store.ts'
import { describeVariants } from './variant-contract.ts'

describe('S3', () => {
  describeBlobStore('S3', temporaryS3Store)
  describeVariants('S3', temporaryS3Store)
  describePartialUploads('S3', temporaryS3Store)

  const sweepOf = ({ catalog, store }: TemporaryS3Store) =>
    createIntentSweep({
      catalog,
      blobs: store,
      onDeletionFailure: (id, error) => expect.unreachable(`${id}: ${error}`),
    })

  test('U5 20 MB are stored in parts, and read back in whole and in part', async () => {
    await using opened = await temporaryS3Store()
    const bytes = randomBytes(20_000_000)
    const received = await opened.store.receive(newItemId(), chunksOf(bytes, 65_536), bytes.length)
    expect(Buffer.from(received.sha256)).toEqual(createHash('sha256').update(bytes).digest())
    await opened.store.commit([received])
    expect((await readBytes(opened.store, received.id))?.equals(bytes)).toBe(true)
    const blob = await opened.store.open(received.id)
    const middle = blob && (await buffer(blob.stream(8_388_600, 8_388_620)))
    expect(middle).toEqual(bytes.subarray(8_388_600, 8_388_621))
  })

  test('U10 a source that fails after parts were sent leaves no object and no multipart upload', async () => {
    await using opened = await temporaryS3Store()
    const failure = new Error('the client went away')
    const source = chunksOf(randomBytes(20_000_000), 65_536, failure)
    await expect(opened.store.receive(newItemId(), source, 1e9)).rejects.toBe(failure)
    expect(await opened.count()).toBe(0)
  })

  // The store decodes the name of the source of a copy, Ceph twice: it does not find the last two.
  test.each([
    ['in a folder', 'notes/a.txt', true],
    ['with a space and a plus', 'a b+c.txt', true],
    ['not in ASCII', 'Ünïcödé.txt', true],
    ['with a percent sign', '100%25.txt', false],
    ['with a question mark', 'a?versionId=1', false],
  ])('F1 a foreign object %s is moved to lost+found with its bytes, or stays', async (_, name, isMoved) => {
    await using opened = await temporaryS3Store()
    const { calls, location } = opened
    const bytes = randomBytes(100)
    await calls.put(`${location.prefix}${name}`, bytes, createHash('sha256').update(bytes).digest())
    const inspection = await openS3Inspection(location)
    const moving = inspection.quarantine({ kind: 'foreign', path: name })
    const path = await moving.catch((error: unknown) => (error instanceof EntryUnmovable ? name : null))
    if (isMoved) expect(path).toMatch(/^lost\+found\/foreign\./)
    const stored = await calls.get(`${location.prefix}${path}`, 0, 1_000)
    expect(stored && (await buffer(stored.body))).toEqual(bytes)
    expect(await opened.count()).toBe(1)
  })

  test('S8 a sweep removes the objects and multipart uploads of processes that were killed', async () => {
    await using opened = await temporaryS3Store({ lifetime: 0 })
    const { store, catalog, calls, location } = opened
    const orphan = await receiveBytes(store, randomBytes(1_000))
    const item = await receiveBytes(store, randomBytes(1_000))
    await catalog.addItems(
      await newBucket(catalog, 'other'),
      inBlobStore([newItem({ id: item.id, size: 1_000 })]),
    )
    const interrupted = newItemId()
    await catalog.addIntents([interrupted], 0)
    await calls.createMultipart(`${location.prefix}${interrupted}`)
    expect(await opened.count()).toBe(3)
    const sweep = sweepOf(opened)
    expect([await sweep(), await sweep()]).toEqual([0, 2])
    expect(await opened.count()).toBe(1)
    expect(await readBytes(store, orphan.id)).toBeNull()
    expect(await readBytes(store, item.id)).toHaveLength(1_000)
  })

  describe('partial uploads of several processes', () => {
    const total = 20_000_000
    const half = 9_000_001

    test('R6 an upload that one process began is completed by another one', async () => {
      await using opened = await temporaryS3Store()
      const other = await opened.openOther()
      const bytes = randomBytes(total)
      const upload = await opened.newUpload(total)
      const first = await opened.store.partialUploads.append(
        upload,
        plainChunk(0, chunksOf(bytes.subarray(0, half), 65_536)),
      )
      expect(first).toMatchObject({ size: half, isRecorded: true })
      expect(await opened.catalog.findUpload(upload.id)).toMatchObject({ offset: half })
      await other.partialUploads.append(upload, plainChunk(half, chunksOf(bytes.subarray(half), 65_536)))
      const received = await other.partialUploads.complete(upload.id, total, upload.itemId)
      expect(Buffer.from(received.sha256)).toEqual(createHash('sha256').update(bytes).digest())
      expect((await readBytes(other, upload.itemId))?.equals(bytes)).toBe(true)
    })

    test('R7 of two processes that write at one offset, one stores its bytes, and the other gets a conflict', async () => {
      await using opened = await temporaryS3Store()
      const other = await opened.openOther()
      const upload = await opened.newUpload(total)
      const bytes = randomBytes(half)
      const results = await Promise.allSettled(
        [opened.store, other].map((store) =>
          store.partialUploads.append(upload, plainChunk(0, chunksOf(bytes, 65_536))),
        ),
      )
      expect(results.map(({ status }) => status).toSorted()).toEqual(['fulfilled', 'rejected'])
      const rest = randomBytes(total - half)
      await opened.store.partialUploads.append(upload, plainChunk(half, chunksOf(rest, 65_536)))
      const received = await opened.store.partialUploads.complete(upload.id, total, upload.itemId)
      expect(Buffer.from(received.sha256)).toEqual(createHash('sha256').update(bytes).update(rest).digest())
    })

    test('R6 a part that was sent and not recorded, because the process ended, does not prevent the completion', async () => {
      await using opened = await temporaryS3Store()
      const { partialUploads } = opened.store
      const upload = await opened.newUpload(total)
      const bytes = randomBytes(total)
      const failure = new Error('gone')
      const atomic = { ...plainChunk(0, chunksOf(bytes.subarray(0, half), 65_536, failure)), isAtomic: true }
      expect(await partialUploads.append(upload, atomic)).toMatchObject({ size: 0, failure })
      await partialUploads.append(upload, plainChunk(0, chunksOf(bytes.subarray(0, 100_000), 65_536)))
      await partialUploads.append(upload, plainChunk(100_000, chunksOf(bytes.subarray(100_000), 65_536)))
      const received = await partialUploads.complete(upload.id, total, upload.itemId)
      expect(Buffer.from(received.sha256)).toEqual(createHash('sha256').update(bytes).digest())
    })

    test('R6 if a process ends after the object is complete and before its item is added, the upload continues', async () => {
      await using opened = await temporaryS3Store()
      const other = await opened.openOther()
      const bytes = randomBytes(total)
      const upload = await opened.newUpload(total)
      const { partialUploads } = opened.store
      await partialUploads.append(upload, plainChunk(0, chunksOf(bytes.subarray(0, half), 65_536)))
      await partialUploads.append(upload, plainChunk(half, chunksOf(bytes.subarray(half), 65_536)))
      await partialUploads.complete(upload.id, total, upload.itemId)

      const part = bytes.subarray(half, half + 100_000)
      const again = await other.partialUploads.append(upload, plainChunk(half, chunksOf(part, 65_536)))
      expect(again).toMatchObject({ size: half + 100_000, isRecorded: true })
      const rest = bytes.subarray(half + 100_000)
      await other.partialUploads.append(upload, plainChunk(half + 100_000, chunksOf(rest, 1_000_000)))
      const received = await other.partialUploads.complete(upload.id, total, upload.itemId)
      expect(Buffer.from(received.sha256)).toEqual(createHash('sha256').update(bytes).digest())
      await other.discard([received])
      expect(await readBytes(other, upload.itemId)).not.toBeNull()
    })

    test('R8 the expiry of an upload counts from the last byte of a chunk, however long the chunk takes', async () => {
      await using opened = await temporaryS3Store()
      const upload = await opened.newUpload(total)
      const expiresAt = Date.now() + 7_200_000
      const asked: string[] = []
      async function* source() {
        yield Buffer.alloc(1_000)
        asked.push('bytes')
      }
      await opened.store.partialUploads.append(upload, {
        ...plainChunk(0, source()),
        isAtomic: true,
        expiresAt() {
          asked.push('expiry')
          return expiresAt
        },
      })
      expect(asked).toEqual(['bytes', 'expiry'])
      expect(await opened.catalog.findUpload(upload.id)).toMatchObject({ offset: 1_000, expiresAt })
    })

    test('R6 chunks of the length of a part are stored in the store, and none of their bytes in the catalog', async () => {
      await using opened = await temporaryS3Store()
      const { catalog, store } = opened
      const part = 8 * 1024 * 1024
      const bytes = randomBytes(2 * part)
      const upload = await opened.newUpload(bytes.length)
      const append = (from: number) =>
        store.partialUploads.append(
          upload,
          plainChunk(from, chunksOf(bytes.subarray(from, from + part), 65_536)),
        )
      expect(await append(0)).toMatchObject({ size: part, isRecorded: true })
      expect(await catalog.findUploadPieces(upload.id)).toEqual([])
      expect(await catalog.findUploadParts(upload.id)).toMatchObject({ parts: [{ number: 1, size: part }] })
      await append(part)
      const received = await store.partialUploads.complete(upload.id, bytes.length, upload.itemId)
      expect(Buffer.from(received.sha256)).toEqual(createHash('sha256').update(bytes).digest())
    })

    test('the bytes that precede a part in the catalog are read when the part is sent, not while it waits', async () => {
      await using opened = await temporaryS3Store()
      const { catalog, calls, location } = opened
      const order: string[] = []
      const log = partLog(catalog)
      const memory = new PartMemory()
      const partialUploads = new S3PartialUploads({
        ...{ calls, prefix: location.prefix, onComplete: () => undefined },
        intents: new HeldIntents(intentLog(catalog)),
        memory: {
          create(length) {
            const part = memory.create(length)
            const send = part.send.bind(part)
            const value: Part['send'] = (work) =>
              send((sent) => {
                order.push('send')
                return work(sent)
              })
            return Object.defineProperty(part, 'send', { value })
          },
        },
        log: {
          ...log,
          pieces(id) {
            order.push('read')
            return log.pieces(id)
          },
        },
      })
      const bytes = randomBytes(total)
      const upload = await opened.newUpload(total)
      await partialUploads.append(upload, plainChunk(0, chunksOf(bytes.subarray(0, 1_000), 65_536)))
      await partialUploads.append(upload, plainChunk(1_000, chunksOf(bytes.subarray(1_000, half), 65_536)))
      expect(order).toEqual(['send', 'read'])
      await partialUploads.append(upload, plainChunk(half, chunksOf(bytes.subarray(half, -1), 65_536)))
      await partialUploads.append(upload, plainChunk(total - 1, chunksOf(bytes.subarray(-1))))
      const received = await partialUploads.complete(upload.id, total, upload.itemId)
      expect(order.slice(2)).toEqual(['send', 'read', 'send', 'read'])
      expect(Buffer.from(received.sha256)).toEqual(createHash('sha256').update(bytes).digest())
    })

    test('R6 an upload whose multipart upload the store has removed is lost, never complete', async () => {
      await using opened = await temporaryS3Store()
      const { calls, location } = opened
      const upload = await opened.newUpload(total)
      const { partialUploads } = opened.store
      await partialUploads.append(upload, plainChunk(0, chunksOf(randomBytes(half), 65_536)))
      for await (const found of calls.multipartUploads(location.prefix))
        await calls.abort(found.key, found.upload)
      const finished = partialUploads
        .append(upload, plainChunk(half, chunksOf(randomBytes(total - half), 65_536)))
        .then(() => partialUploads.complete(upload.id, total, upload.itemId))
      await expect(finished).rejects.toThrow(PartialUploadLost)
    })

    test('R9 a sweep aborts the multipart upload of a removed upload', async () => {
      await using opened = await temporaryS3Store({ lifetime: 0 })
      const upload = await opened.newUpload(total)
      await opened.store.partialUploads.append(upload, plainChunk(0, chunksOf(randomBytes(half), 65_536)))
      const sweep = sweepOf(opened)
      await sweep()
      expect([await sweep(), await opened.count()]).toEqual([0, 1])
      await opened.catalog.removeUpload(upload.id)
      expect([await sweep(), await opened.count()]).toEqual([1, 0])
    })
  })

  test('a store with wrong credentials or without its bucket is not reachable, and reads fail with storage-unavailable', async () => {
    await using opened = await temporaryS3Store()
    const id = await storeBytes(opened.store, randomBytes(10))
    process.env['AWS_SECRET_ACCESS_KEY'] = 'wrong'
    const other = await opened.openOther()
    await expect(other.open(id)).rejects.toMatchObject({ code: 'storage-unavailable' })
    expect(await other.isReachable()).toBe(false)
  })
})
