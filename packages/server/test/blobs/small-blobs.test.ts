import { randomBytes } from 'node:crypto'
import { mkdir, readdir, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { buffer } from 'node:stream/consumers'
import { expect, test } from 'vitest'
import { createSmallBlobs } from '../../src/blobs/disk/small-blobs.ts'
import { startFileWriterThread } from '../../src/blobs/disk/start-file-writer-thread.ts'
import { type MediaId, newMediaId } from '../../src/core/media-id.ts'
import { chunksOf, readBytes, receiveBytes } from './blob-contract.ts'
import { type TemporaryStore, temporaryStore } from './temporary-store.ts'

const unexpected = (error: Error): void => expect.unreachable(error.message)
const withThread = () => temporaryStore({ thread: { onFailure: unexpected } })
const pathOf = ({ directory }: TemporaryStore, id: MediaId): string =>
  join(directory, 'blobs', id.slice(0, 2), id)

const limit = 1e9
const small = 65_536
const maxHeld = 16 * 1024 * 1024

test('a small file is written to the disk at its commit, a larger one while it is received', async () => {
  await using opened = await withThread()
  const bytes = randomBytes(small)
  const received = await receiveBytes(opened.store, bytes)
  expect(await opened.temporary()).toEqual([])
  expect(opened.store.contentOf(received)).toEqual(Uint8Array.from(bytes))
  await opened.store.discard(received)
  const larger = await receiveBytes(opened.store, randomBytes(small + 1))
  expect(await opened.temporary()).toHaveLength(1)
  await opened.store.discard(larger)
  expect(await opened.temporary()).toEqual([])
})

test('a file of unknown size is held in memory if it is small, and is written to the disk completely if not', async () => {
  await using opened = await withThread()
  const receive = (bytes: Uint8Array, failure?: Error) =>
    opened.store.receive(chunksOf(bytes, 1000, failure), { limit, atMost: null })
  for (const size of [0, 1, 1000, 1001, small]) {
    const bytes = randomBytes(size)
    const received = await receive(bytes)
    expect([size, await opened.temporary(), received.size]).toEqual([size, [], size])
    expect(opened.store.contentOf(received)).toEqual(Uint8Array.from(bytes))
    const id = newMediaId()
    await opened.store.commit(received, id)
    expect((await readBytes(opened.store, id))?.equals(bytes)).toBe(true)
  }
  const larger = randomBytes(3 * small + 1)
  const spilled = await receive(larger)
  expect(await opened.temporary()).toHaveLength(1)
  const id = newMediaId()
  await opened.store.commit(spilled, id)
  expect((await readBytes(opened.store, id))?.equals(larger)).toBe(true)

  const failure = new Error('gone')
  await expect(receive(randomBytes(small), failure)).rejects.toBe(failure)
  await expect(receive(larger, failure)).rejects.toBe(failure)
  await expect(
    opened.store.receive(chunksOf(randomBytes(5000)), { limit: 4999, atMost: null }),
  ).rejects.toMatchObject({ code: 'file-too-large' })
  expect(await opened.temporary()).toEqual([])
})

test('concurrent commits are each stored under their own id, and tmp/ is empty afterwards', async () => {
  await using opened = await withThread()
  const files = Array.from({ length: 200 }, (_, index) => ({ id: newMediaId(), bytes: randomBytes(index) }))
  await Promise.all(
    files.map(async ({ id, bytes }) => opened.store.commit(await receiveBytes(opened.store, bytes), id)),
  )
  for (const { id, bytes } of files) expect((await readBytes(opened.store, id))?.equals(bytes)).toBe(true)
  expect(await opened.temporary()).toEqual([])
  expect(opened.openFiles()).toEqual([])
})

test('B8, U10: a file that cannot be committed does not fail the others, and leaves no temporary file', async () => {
  await using opened = await withThread()
  const [planted, blocked, good] = [newMediaId(), newMediaId(), newMediaId()]
  await mkdir(dirname(pathOf(opened, planted)))
  await writeFile(pathOf(opened, planted), 'was here before')
  await writeFile(dirname(pathOf(opened, blocked)), 'no directory')
  const results = await Promise.allSettled(
    [planted, blocked, good].map(async (id) =>
      opened.store.commit(await receiveBytes(opened.store, randomBytes(10)), id),
    ),
  )
  expect(results.map((result) => (result.status === 'rejected' ? String(result.reason) : 'stored'))).toEqual([
    expect.stringContaining('exists already'),
    expect.stringContaining('is not a directory'),
    'stored',
  ])
  expect(await opened.temporary()).toEqual([])
  expect(await opened.stored()).toHaveLength(3)
})

test('close finishes pending commits, and later commits are rejected', async () => {
  await using opened = await withThread()
  const ids = Array.from({ length: 20 }, () => newMediaId())
  const [late, ...received] = await Promise.all(
    Array.from({ length: 21 }, () => receiveBytes(opened.store, randomBytes(100))),
  )
  const committing = received.map((blob, index) => opened.store.commit(blob, ids[index] ?? newMediaId()))
  await opened.store.close()
  await Promise.all(committing)
  expect(await opened.stored()).toHaveLength(20)
  await expect(late && opened.store.commit(late, newMediaId())).rejects.toThrow('ended')
})

test('a thread that cannot start rejects the start and does not call onFailure', async () => {
  await using opened = await temporaryStore()
  const nowhere = join(opened.directory, 'nowhere')
  await expect(startFileWriterThread(nowhere, unexpected, () => undefined)).rejects.toThrow('ENOENT')
  expect(await readdir(opened.directory)).not.toContain('nowhere')
})

test('the bytes in memory are limited until they are committed or discarded', async () => {
  const commits: PromiseWithResolvers<void>[] = []
  const blobs = createSmallBlobs({
    commit() {
      const one = Promise.withResolvers<void>()
      commits.push(one)
      return one.promise
    },
  })
  const receive = (source = chunksOf(randomBytes(small))) => blobs.receive(source, limit, small)
  const receiveAll = () => Promise.all(Array.from({ length: maxHeld / small }, () => receive()))
  expect(blobs.receive(chunksOf(randomBytes(1)), limit, small + 1)).toBeNull()
  const [stored, failed, dropped, ...rest] = await receiveAll()
  if (!stored || !failed || !dropped) return expect.unreachable()
  const committing = [stored, failed].map(({ handle }) => blobs.commit(handle, newMediaId()))
  // A slow disk must not fill the memory.
  expect(receive()).toBeNull()
  commits[0]?.resolve()
  commits[1]?.reject(new Error('EIO'))
  expect((await Promise.allSettled(committing)).map(({ status }) => status)).toEqual([
    'fulfilled',
    'rejected',
  ])
  blobs.discard(dropped.handle)
  const failure = new Error('gone')
  for (let again = 0; again < 5; again += 1)
    await expect(receive(chunksOf(randomBytes(10), 10, failure))).rejects.toBe(failure)
  // A file reserves its real size, not the size that its form allows.
  const short = await receive(chunksOf(randomBytes(10)))
  expect(short?.size).toBe(10)
  const again = [await receive(), await receive()]
  expect(again.every((blob) => blob !== null)).toBe(true)
  for (const blob of [short, ...again, ...rest]) if (blob) blobs.discard(blob.handle)
  expect((await receiveAll()).every((blob) => blob !== null)).toBe(true)

  // The memory limit is reached: a file of unknown size is written to the disk from its first byte.
  const bytes = randomBytes(2500)
  const spilled = blobs.receiveOrSpill(chunksOf(bytes), limit, async (source) => {
    expect((await buffer(source)).equals(bytes)).toBe(true)
    throw failure
  })
  await expect(spilled).rejects.toBe(failure)
})
