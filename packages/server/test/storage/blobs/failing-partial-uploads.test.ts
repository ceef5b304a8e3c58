import { randomBytes } from 'node:crypto'
import { mkdir, readdir, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { newItemId, newUploadId } from '../../../src/core/ids.ts'
import { PartialUploadLost } from '../../../src/storage/blobs/blobs.ts'
import { chunksOf } from './blob-contract.ts'
import { plainChunk } from './partial-upload-contract.ts'
import { temporaryStore } from './temporary-store.ts'
import { systemError, watchedFiles } from './watched-files.ts'

const chunk = (offset: number, bytes: Uint8Array = randomBytes(10)) => plainChunk(offset, chunksOf(bytes))
const uploadOf = (id = newUploadId()) => ({ id, itemId: newItemId(), length: null })

/** A store whose disk calls fail with this error code if they match `matches`, while `state.isFailing` is true. */
async function failingStore(code: string, matches: RegExp) {
  const state = { isFailing: false }
  const { files, calls } = watchedFiles((call) => {
    if (state.isFailing && matches.test(call)) throw systemError(code)
  })
  const opened = await temporaryStore({ files })
  return { opened, calls, state, uploads: () => readdir(join(opened.directory, 'uploads')) }
}

describe('R6 the order of disk calls for a durable chunk', () => {
  test('the first chunk syncs the file, then uploads/, before it resolves; later chunks sync only the file', async () => {
    const { files, calls } = watchedFiles()
    await using opened = await temporaryStore({ files })
    const id = newUploadId()
    calls.length = 0
    await opened.store.partialUploads.append(uploadOf(id), chunk(0))
    expect(calls).toEqual([
      `open ${id}`,
      `write ${id}`,
      `sync ${id}`,
      'open uploads',
      'sync uploads',
      'close uploads',
      `close ${id}`,
    ])
    calls.length = 0
    await opened.store.partialUploads.append(uploadOf(id), chunk(10))
    expect(calls).toEqual([`open ${id}`, `write ${id}`, `sync ${id}`, `close ${id}`])
  })
})

describe('R6 a disk that fails during a chunk', () => {
  test.each<[what: string, matches: RegExp]>([
    ['the file', /^sync (?!uploads$)/],
    ['uploads/', /^sync uploads$/],
  ])('a failed sync of %s loses the upload permanently', async (_what, matches) => {
    const { opened, state, calls, uploads } = await failingStore('EIO', matches)
    await using _ = opened
    const id = newUploadId()
    state.isFailing = true
    await expect(opened.store.partialUploads.append(uploadOf(id), chunk(0))).rejects.toThrow(
      PartialUploadLost,
    )
    expect(await uploads()).toEqual([])
    state.isFailing = false
    calls.length = 0
    await expect(opened.store.partialUploads.append(uploadOf(id), chunk(10))).rejects.toThrow(
      PartialUploadLost,
    )
    expect(calls.filter((call) => call.startsWith('sync'))).toEqual([])
    expect(opened.openFiles()).toEqual([])
  })

  test('a failed sync in the middle of a chunk loses the upload permanently, and no other sync is attempted', async () => {
    const { opened, state, calls, uploads } = await failingStore('EIO', /^datasync/)
    await using _ = opened
    const id = newUploadId()
    state.isFailing = true
    calls.length = 0
    const large = plainChunk(0, chunksOf(randomBytes(5_000_000)))
    await expect(opened.store.partialUploads.append(uploadOf(id), large)).rejects.toThrow(PartialUploadLost)
    expect(await uploads()).toEqual([])
    expect(calls.filter((call) => call.startsWith('sync'))).toEqual([])
    expect(opened.openFiles()).toEqual([])
  })

  test('after a failed write, the bytes that were synced before the chunk count, and the upload continues', async () => {
    const { opened, state, calls } = await failingStore('EIO', /^write/)
    await using _ = opened
    const id = newUploadId()
    const bytes = randomBytes(30)
    await opened.store.partialUploads.append(uploadOf(id), chunk(0, bytes.subarray(0, 10)))
    state.isFailing = true
    calls.length = 0
    const { size, failure } = await opened.store.partialUploads.append(uploadOf(id), chunk(10))
    expect([size, failure]).toEqual([10, expect.objectContaining({ code: 'EIO' })])
    expect(calls.filter((call) => call.startsWith('sync'))).toEqual([])
    state.isFailing = false
    await opened.store.partialUploads.append(uploadOf(id), chunk(10, bytes.subarray(10)))
    expect(opened.openFiles()).toEqual([])
    const received = await opened.store.partialUploads.complete(id, 30, newItemId())
    expect(Buffer.from(await (await opened.store.peek(received)).arrayBuffer())).toEqual(bytes)
  })

  test('a full disk keeps the received bytes, and the upload continues when there is space', async () => {
    const { opened, state } = await failingStore('ENOSPC', /^write/)
    await using _ = opened
    const id = newUploadId()
    const bytes = randomBytes(20)
    await opened.store.partialUploads.append(uploadOf(id), chunk(0, bytes.subarray(0, 10)))
    state.isFailing = true
    const { size, failure } = await opened.store.partialUploads.append(uploadOf(id), chunk(10))
    expect([size, failure]).toEqual([10, expect.objectContaining({ code: 'storage-full' })])
    state.isFailing = false
    await opened.store.partialUploads.append(uploadOf(id), chunk(10, bytes.subarray(10)))
    const received = await opened.store.partialUploads.complete(id, 20, newItemId())
    expect(Buffer.from(await (await opened.store.peek(received)).arrayBuffer())).toEqual(bytes)
  })

  test('a sync that fails on a full disk reports storage-full', async () => {
    const { opened, state } = await failingStore('ENOSPC', /^sync/)
    await using _ = opened
    state.isFailing = true
    await expect(opened.store.partialUploads.append(uploadOf(), chunk(0))).rejects.toMatchObject({
      cause: { code: 'storage-full' },
    })
  })
})

describe('B8 foreign entries in uploads/', () => {
  test('a symbolic link is not followed, and recovery removes the link and a directory, but not the target of the link', async () => {
    await using opened = await temporaryStore()
    const id = newUploadId()
    const outside = join(opened.directory, 'outside')
    await writeFile(outside, 'secret')
    await symlink(outside, join(opened.directory, 'uploads', id))
    await mkdir(join(opened.directory, 'uploads', 'directory', 'deep'), { recursive: true })
    await expect(opened.store.partialUploads.append(uploadOf(id), chunk(0))).rejects.toThrow()
    await expect(opened.store.partialUploads.complete(id, 6, newItemId())).rejects.toThrow()
    await opened.store.recovery?.matchUploads([{ id, itemId: newItemId(), offset: 0 }])
    expect(await readdir(join(opened.directory, 'uploads'))).toEqual([])
    expect(await readdir(opened.directory)).toContain('outside')
  })
})
