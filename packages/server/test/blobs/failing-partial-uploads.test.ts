import { randomBytes } from 'node:crypto'
import { mkdir, readdir, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { PartialUploadLost } from '../../src/blobs/blobs.ts'
import { newUploadId } from '../../src/core/upload-id.ts'
import { chunksOf } from './blob-contract.ts'
import { temporaryStore } from './temporary-store.ts'
import { systemError, watchedFiles } from './watched-files.ts'

const limit = Number.MAX_SAFE_INTEGER
const piece = (offset: number, bytes: Uint8Array = randomBytes(10)) => ({
  offset,
  source: chunksOf(bytes),
  limit,
})

/** The store, and a disk that fails with this code at the calls that match from the moment it is armed. */
async function failingStore(code: string, matches: RegExp) {
  const state = { armed: false }
  const { files, calls } = watchedFiles((call) => {
    if (state.armed && matches.test(call)) throw systemError(code)
  })
  const opened = await temporaryStore({ files })
  return { opened, calls, state, uploads: () => readdir(join(opened.directory, 'uploads')) }
}

describe('R6 the order of a durable piece', () => {
  test('write < sync of the file < sync of uploads/ < resolved; later pieces need the file alone', async () => {
    const { files, calls } = watchedFiles()
    await using opened = await temporaryStore({ files })
    const id = newUploadId()
    calls.length = 0
    await opened.store.partialUploads.append(id, piece(0))
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
    await opened.store.partialUploads.append(id, piece(10))
    expect(calls).toEqual([`open ${id}`, `write ${id}`, `sync ${id}`, `close ${id}`])
  })
})

describe('a disk that fails under a piece', () => {
  test.each([/^sync [^u]/, /^sync uploads/])(
    'a sync that fails, %s, loses the part for good',
    async (matches) => {
      const { opened, state, calls, uploads } = await failingStore('EIO', matches)
      await using _ = opened
      const id = newUploadId()
      state.armed = true
      await expect(opened.store.partialUploads.append(id, piece(0))).rejects.toThrow(PartialUploadLost)
      expect(await uploads()).toEqual([])
      state.armed = false
      calls.length = 0
      await expect(opened.store.partialUploads.append(id, piece(10))).rejects.toThrow(PartialUploadLost)
      expect(calls.filter((call) => call.startsWith('sync'))).toEqual([])
      expect(opened.openFiles()).toEqual([])
    },
  )

  test('a sync that fails while more arrives loses the part for good, whatever the sync after it says', async () => {
    const { opened, state, calls, uploads } = await failingStore('EIO', /^datasync/)
    await using _ = opened
    const id = newUploadId()
    state.armed = true
    calls.length = 0
    const large = { offset: 0, source: chunksOf(randomBytes(5_000_000)), limit }
    await expect(opened.store.partialUploads.append(id, large)).rejects.toThrow(PartialUploadLost)
    expect(await uploads()).toEqual([])
    expect(calls.filter((call) => call.startsWith('sync'))).toEqual([])
    expect(opened.openFiles()).toEqual([])
  })

  test('a write that fails loses the part for good', async () => {
    const { opened, state, uploads } = await failingStore('EIO', /^write/)
    await using _ = opened
    const id = newUploadId()
    state.armed = true
    await expect(opened.store.partialUploads.append(id, piece(0))).rejects.toThrow(PartialUploadLost)
    expect(await uploads()).toEqual([])
  })

  test('a disk that is full keeps what there was, and goes on when there is room', async () => {
    const { opened, state } = await failingStore('ENOSPC', /^write/)
    await using _ = opened
    const id = newUploadId()
    const bytes = randomBytes(20)
    await opened.store.partialUploads.append(id, piece(0, bytes.subarray(0, 10)))
    state.armed = true
    const { size, failure } = await opened.store.partialUploads.append(id, piece(10))
    expect([size, failure]).toEqual([10, expect.objectContaining({ code: 'storage-full' })])
    state.armed = false
    await opened.store.partialUploads.append(id, piece(10, bytes.subarray(10)))
    const received = await opened.store.partialUploads.complete(id, 20)
    expect(Buffer.from(await (await opened.store.peek(received)).arrayBuffer())).toEqual(bytes)
  })

  test('a sync for which the disk has no room tells so', async () => {
    const { opened, state } = await failingStore('ENOSPC', /^sync/)
    await using _ = opened
    state.armed = true
    await expect(opened.store.partialUploads.append(newUploadId(), piece(0))).rejects.toMatchObject({
      cause: { code: 'storage-full' },
    })
  })
})

describe('B8 what was planted in uploads/', () => {
  test('a link is neither followed nor written through, and recovery removes it alone', async () => {
    await using opened = await temporaryStore()
    const id = newUploadId()
    const outside = join(opened.directory, 'outside')
    await writeFile(outside, 'secret')
    await symlink(outside, join(opened.directory, 'uploads', id))
    await mkdir(join(opened.directory, 'uploads', 'directory', 'deep'), { recursive: true })
    await expect(opened.store.partialUploads.append(id, piece(0))).rejects.toThrow()
    await expect(opened.store.partialUploads.complete(id, 6)).rejects.toThrow()
    await opened.store.partialUploads.recover([{ id, mediaId: 'x' as never, offset: 0 }])
    expect(await readdir(join(opened.directory, 'uploads'))).toEqual([])
    expect(await readdir(opened.directory)).toContain('outside')
  })
})
