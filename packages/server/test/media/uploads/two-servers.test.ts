import { randomBytes } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { hasCeph } from '../../../../../test/harness/ceph.ts'
import type { BlobStore } from '../../../src/blobs/blobs.ts'
import { createFileReceivers } from '../../../src/media/receive-files.ts'
import { appendUploadOperation } from '../../../src/media/uploads/append-upload.ts'
import { createUploadLocks } from '../../../src/media/uploads/upload-locks.ts'
import { chunksOf, readBytes } from '../../blobs/blob-contract.ts'
import { type TemporaryS3Store, temporaryS3Store } from '../../blobs/temporary-s3-store.ts'

/** A chunk stops before its last bytes, and continues once `resume` is called. */
function stoppedChunk(bytes: Uint8Array) {
  const stopped = Promise.withResolvers<void>()
  const resumed = Promise.withResolvers<void>()
  async function* source() {
    yield bytes.subarray(0, -1)
    stopped.resolve()
    await resumed.promise
    yield bytes.subarray(-1)
  }
  return { source: source(), stopped: stopped.promise, resume: resumed.resolve }
}

const length = 12_000_000
const half = 9_000_000
const bytes = randomBytes(length)
const lastChunk = () => chunksOf(bytes.subarray(half), 65_536)

/** The operation in one of several servers on the same catalog and store. `beforeCommit` runs between the last byte and the item. */
function serverOn({ catalog }: TemporaryS3Store, store: BlobStore, beforeCommit = async () => {}) {
  const blobs: BlobStore = {
    ...store,
    async commit(received) {
      await beforeCommit()
      await store.commit(received)
    },
  }
  return appendUploadOperation({
    ...{ catalog, blobs, newReceiver: createFileReceivers({ blobs, inlineSize: 0 }), maxFileSize: 1e9 },
    ...{ measurePicture: async () => null, locks: createUploadLocks(), expiry: 3_600_000, now: Date.now },
  })
}

/** An upload whose first bytes are stored, and two servers. */
async function openTwoServers(beforeCommit?: () => Promise<void>) {
  const opened = await temporaryS3Store()
  const first = serverOn(opened, opened.store, beforeCommit)
  const second = serverOn(opened, await opened.openOther())
  const { id, mediaId } = await opened.newUpload(length)
  const isAtomic = false
  await first(id, { offset: 0, source: chunksOf(bytes.subarray(0, half), 65_536), isAtomic })
  return {
    first: (source: AsyncIterable<Uint8Array>) => first(id, { offset: half, source, isAtomic }),
    second: (source: AsyncIterable<Uint8Array>) => second(id, { offset: half, source, isAtomic }),
    async requireFinished() {
      expect(await opened.catalog.upload(id)).toMatchObject({ finished: true, offset: length })
      expect((await readBytes(opened.store, mediaId))?.equals(bytes)).toBe(true)
    },
    [Symbol.asyncDispose]: () => opened[Symbol.asyncDispose](),
  }
}

const conflict = { code: 'upload-offset-conflict' }

describe.runIf(hasCeph)('R5 of two servers that receive the last chunk of an upload, one finishes it', () => {
  test('the other gets a conflict, if the upload is finished while it receives', async () => {
    await using servers = await openTwoServers()
    const slow = stoppedChunk(bytes.subarray(half))
    const late = servers.second(slow.source)
    await slow.stopped
    await servers.first(lastChunk())
    slow.resume()
    await expect(late).rejects.toMatchObject(conflict)
    await servers.requireFinished()
  })

  test('the other gets a conflict, if both have completed the object', async () => {
    const committing = Promise.withResolvers<void>()
    const resumed = Promise.withResolvers<void>()
    await using servers = await openTwoServers(async () => {
      committing.resolve()
      await resumed.promise
    })
    const late = servers.first(lastChunk())
    await committing.promise
    expect(await servers.second(lastChunk())).toMatchObject({ upload: { finished: true } })
    resumed.resolve()
    await expect(late).rejects.toMatchObject(conflict)
    await servers.requireFinished()
  })
})
