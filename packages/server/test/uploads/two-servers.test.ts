import { randomBytes } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { service } from '../../src/core/token-rules.ts'
import type { BlobStore } from '../../src/storage/blobs/blobs.ts'
import { createFileReceivers } from '../../src/uploads/received-files.ts'
import { appendUploadOperation } from '../../src/uploads/resumable-chunks.ts'
import { OwnUploadLocks } from '../../src/uploads/upload-locks.ts'
import { chunksOf, readBytes } from '../storage/blobs/blob-contract.ts'
import { type TemporaryS3Store, temporaryS3Store } from '../storage/blobs/temporary-s3-store.ts'
import { withMethods } from '../with-methods.ts'
import { unlimited } from './temporary-media.ts'

/** A chunk that stops after its first byte, and continues once `resume` is called. */
function stoppedChunk(bytes: Uint8Array) {
  const stopped = Promise.withResolvers<void>()
  const resumed = Promise.withResolvers<void>()
  async function* source() {
    yield bytes.subarray(0, 1)
    stopped.resolve()
    await resumed.promise
    yield* chunksOf(bytes.subarray(1), 65_536)
  }
  return { source: source(), stopped: stopped.promise, resume: resumed.resolve }
}

const half = 9_000_000

/** The operation in one of several servers on the same catalog and store. `beforeCommit` runs between the last byte and the item. */
function serverOn({ catalog }: TemporaryS3Store, store: BlobStore, beforeCommit = async () => {}) {
  const blobs = withMethods(store, {
    async commit(received) {
      await beforeCommit()
      await store.commit(received)
    },
  })
  return appendUploadOperation({
    ...{ catalog, blobs, newReceiver: createFileReceivers({ blobs, inlineSize: 0 }), maxFileSize: 1e9 },
    ...{
      measurePicture: async () => null,
      readTaken: () => null,
      removeMetadata: async (file) => ({ stored: file, reading: null }),
      onStored: null,
      space: unlimited,
    },
    ...{ locks: new OwnUploadLocks(), expiry: 3_600_000, now: Date.now },
  })
}

/** An upload whose first bytes are stored, and two servers. If `isHeld`, the first server stops when it has completed the object. */
async function openTwoServers({ length = 12_000_000, isHeld = false, isDeferred = false } = {}) {
  const bytes = randomBytes(length)
  const completed = Promise.withResolvers<void>()
  const resumed = Promise.withResolvers<void>()
  const beforeCommit = async () => {
    completed.resolve()
    if (isHeld) await resumed.promise
  }
  const opened = await temporaryS3Store()
  const first = serverOn(opened, opened.store, beforeCommit)
  const second = serverOn(opened, await opened.openOther())
  const { id, itemId } = await opened.newUpload(isDeferred ? null : length)
  const rest = { isAtomic: false, by: service, removesMetadata: false, limits: null }
  await first(id, { offset: 0, source: chunksOf(bytes.subarray(0, half), 65_536), ...rest })
  return {
    lastBytes: bytes.subarray(half),
    completed: completed.promise,
    resume: resumed.resolve,
    first: (source: AsyncIterable<Uint8Array>) => first(id, { offset: half, source, ...rest }),
    second: (source: AsyncIterable<Uint8Array>) => second(id, { offset: half, source, ...rest }),
    declareBySecond: () => second(id, { offset: half, length, source: chunksOf(new Uint8Array(0)), ...rest }),
    repeat: () =>
      first(id, { offset: half, length, source: chunksOf(bytes.subarray(half), 65_536), ...rest }),
    find: () => opened.catalog.findUpload(id),
    async requireFinished() {
      expect(await opened.catalog.findUpload(id)).toMatchObject({ finished: true, offset: length })
      expect((await readBytes(opened.store, itemId))?.equals(bytes)).toBe(true)
    },
    [Symbol.asyncDispose]: () => opened[Symbol.asyncDispose](),
  }
}

const conflict = { code: 'upload-offset-conflict' }

test('R5 bytes up to a length that another server has declared in the meantime do not end an upload without its item', async () => {
  await using servers = await openTwoServers({ isDeferred: true })
  const slow = stoppedChunk(servers.lastBytes)
  const late = servers.first(slow.source)
  await slow.stopped
  expect(await servers.declareBySecond()).toMatchObject({ upload: { offset: half, finished: false } })
  slow.resume()
  await expect(late).rejects.toMatchObject(conflict)
  expect(await servers.find()).toMatchObject({ offset: half, length: 12_000_000, finished: false })
  expect(await servers.repeat()).toMatchObject({ upload: { finished: true } })
  await servers.requireFinished()
})

describe('R5 of two servers that receive the last chunk of an upload, one finishes it', () => {
  test('the other gets a conflict, if the upload is finished while it receives', async () => {
    await using servers = await openTwoServers()
    const slow = stoppedChunk(servers.lastBytes)
    const late = servers.second(slow.source)
    await slow.stopped
    await servers.first(chunksOf(servers.lastBytes, 65_536))
    slow.resume()
    await expect(late).rejects.toMatchObject(conflict)
    await servers.requireFinished()
  })

  test('the other gets a conflict, if the object is complete before it sends a part', async () => {
    await using servers = await openTwoServers({ length: 20_000_000, isHeld: true })
    const slow = stoppedChunk(servers.lastBytes)
    const late = servers.second(slow.source)
    await slow.stopped
    const finishing = servers.first(chunksOf(servers.lastBytes, 65_536))
    await servers.completed
    slow.resume()
    await expect(late).rejects.toMatchObject(conflict)
    servers.resume()
    expect(await finishing).toMatchObject({ upload: { finished: true } })
    await servers.requireFinished()
  })

  test('the other finishes it, if the object is complete before it sends the last part', async () => {
    await using servers = await openTwoServers({ isHeld: true })
    const slow = stoppedChunk(servers.lastBytes)
    const winner = servers.second(slow.source)
    await slow.stopped
    const late = servers.first(chunksOf(servers.lastBytes, 65_536))
    await servers.completed
    slow.resume()
    expect(await winner).toMatchObject({ upload: { finished: true } })
    servers.resume()
    await expect(late).rejects.toMatchObject(conflict)
    await servers.requireFinished()
  })

  test('the slower one gets a conflict, if both have received all bytes', async () => {
    await using servers = await openTwoServers({ isHeld: true })
    const late = servers.first(chunksOf(servers.lastBytes, 65_536))
    await servers.completed
    const winner = servers.second(chunksOf(servers.lastBytes, 65_536))
    expect(await winner).toMatchObject({ upload: { finished: true } })
    servers.resume()
    await expect(late).rejects.toMatchObject(conflict)
    await servers.requireFinished()
  })
})
