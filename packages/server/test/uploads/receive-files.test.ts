import { createHash, randomBytes } from 'node:crypto'
import { expect, test } from 'vitest'
import { newItemId } from '../../src/core/ids.ts'
import type { ReceivedFile } from '../../src/storage/blobs/received-file.ts'
import { createFileReceivers, receivedBytes } from '../../src/uploads/received-files.ts'
import { chunksOf } from '../storage/blobs/blob-contract.ts'
import { temporaryStore } from '../storage/blobs/temporary-store.ts'

const noLimit = 1e9
const bytesOf = (file: ReceivedFile) => ('bytes' in file ? file.bytes : null)

async function receivers(inlineSize: number) {
  const disk = await temporaryStore()
  const newReceiver = createFileReceivers({ blobs: disk.store, inlineSize })
  return { disk, newReceiver, [Symbol.asyncDispose]: () => disk[Symbol.asyncDispose]() }
}

test.each([
  [0, true],
  [1, true],
  [999, true],
  [1_000, true],
  [1_001, false],
  [70_000, false],
])('a file of %i bytes with a limit of 1000 is received into memory: %s', async (size, isHeld) => {
  await using opened = await receivers(1_000)
  const bytes = randomBytes(size)
  for (const atMost of [null, size]) {
    const file = await opened.newReceiver().receive(newItemId(), chunksOf(bytes, 300), noLimit, atMost)
    expect(bytesOf(file) !== null).toBe(isHeld)
    if (isHeld) expect(bytes.equals(bytesOf(file) ?? Buffer.alloc(1))).toBe(true)
    expect(file.size).toBe(size)
    expect(Buffer.from(file.sha256)).toEqual(createHash('sha256').update(bytes).digest())
    expect(bytes.subarray(0, 300).equals(file.head.subarray(0, 300))).toBe(true)
  }
  expect(await opened.disk.temporary()).toHaveLength(isHeld ? 0 : 2)
})

test('0 receives every file into the blob store', async () => {
  await using opened = await receivers(0)
  const file = await opened.newReceiver().receive(newItemId(), chunksOf(randomBytes(0)), noLimit, null)
  expect(bytesOf(file)).toBeNull()
  expect(await opened.disk.temporary()).toHaveLength(1)
})

test('the buffer of a received file has no other bytes, also where the source reuses its chunks', async () => {
  await using opened = await receivers(1_000)
  const chunk = Buffer.from('abcdef').subarray(1, 3)
  async function* source() {
    yield chunk
    chunk.fill('x')
    yield chunk
  }
  for (const file of [
    await opened.newReceiver().receive(newItemId(), source(), noLimit, null),
    await opened.newReceiver().receive(newItemId(), chunksOf(Buffer.from('pool')), noLimit, null),
  ])
    expect(bytesOf(file)?.buffer.byteLength).toBe(file.size)
  expect(chunk.toString()).toBe('xx')
})

test('files of a request that have arrived whole share few buffers, each with its own bytes and digest', async () => {
  await using opened = await receivers(70_000)
  const receiver = opened.newReceiver()
  const sent = Array.from({ length: 100 }, (_, index) => randomBytes([0, 1, 2_000, 70_000][index % 4] ?? 0))
  const files = sent.map((bytes) => receiver.receiveWhole(bytes, noLimit))
  for (const [index, bytes] of sent.entries()) {
    expect(bytes.equals(files[index]?.bytes ?? Buffer.from('none'))).toBe(true)
    expect(Buffer.from(files[index]?.sha256 ?? [])).toEqual(createHash('sha256').update(bytes).digest())
  }
  // The 25 files of 70,000 bytes are longer than a shared buffer; the others have 50 kB together.
  const buffers = new Set<unknown>(files.map((file) => file?.bytes.buffer))
  expect(buffers.size).toBeLessThanOrEqual(25 + 8)
  // The commit takes the bytes away, and the response contains the digests.
  expect(files.some((file) => buffers.has(file?.sha256.buffer))).toBe(false)
})

test('U6: a file of exactly the limit is accepted, one byte more is refused', async () => {
  await using opened = await receivers(1_000)
  const receiver = opened.newReceiver()
  expect((await receiver.receive(newItemId(), chunksOf(randomBytes(500), 100), 500, null)).size).toBe(500)
  await expect(
    receiver.receive(newItemId(), chunksOf(randomBytes(501), 100), 500, null),
  ).rejects.toMatchObject({
    code: 'file-too-large',
    message: expect.stringContaining('500'),
  })
})

test('U10: a source that fails, before or after the limit, fails with the same error and leaves no bytes', async () => {
  await using opened = await receivers(1_000)
  const failure = new Error('the client went away')
  for (const size of [900, 5_000])
    await expect(
      opened.newReceiver().receive(newItemId(), chunksOf(randomBytes(size), 100, failure), noLimit, null),
    ).rejects.toBe(failure)
  expect(await opened.disk.temporary()).toEqual([])
})

test('16 MB are in memory at once; further files go to the blob store until a request ends', async () => {
  await using opened = await receivers(1024 * 1024)
  const bytes = new Uint8Array(1024 * 1024)
  const receive = (receiver: ReturnType<typeof opened.newReceiver>) =>
    receiver.receive(newItemId(), chunksOf(bytes, 65_536), noLimit, null)
  const [first, second] = [opened.newReceiver(), opened.newReceiver()]
  const failure = new Error('gone')
  await expect(first.receive(newItemId(), chunksOf(bytes, 65_536, failure), noLimit, null)).rejects.toBe(
    failure,
  )
  for (let count = 0; count < 16; count++) expect(bytesOf(await receive(first))).not.toBeNull()
  expect(bytesOf(await receive(second))).toBeNull()
  expect(bytesOf(await receive(first))).toBeNull()
  first.release()
  expect(bytesOf(await receive(second))).not.toBeNull()
})

test('memory for small files is reserved until a request ends, and counts with the files received', async () => {
  await using opened = await receivers(1024 * 1024)
  const [first, second] = [opened.newReceiver(), opened.newReceiver()]
  expect(first.reserve(1024 * 1024 + 1)).toBe(false)
  for (let count = 0; count < 16; count++) expect(first.reserve(1024 * 1024)).toBe(true)
  expect(second.reserve(1)).toBe(false)
  expect(bytesOf(await second.receive(newItemId(), chunksOf(randomBytes(9)), noLimit, null))).toBeNull()
  first.release()
  expect(second.reserve(1)).toBe(true)
})

test('bytes that fill their buffer are taken over, and others are copied', () => {
  const whole = new TextEncoder().encode('whole')
  expect(receivedBytes(whole)).toMatchObject({ size: 5, bytes: Buffer.from('whole') })
  expect(receivedBytes(whole).bytes.buffer).toBe(whole.buffer)
  const part = Buffer.from('a part of it').subarray(2, 6)
  const copied = receivedBytes(part)
  expect(copied).toMatchObject({ size: 4, bytes: Buffer.from('part') })
  expect(copied.bytes.buffer.byteLength).toBe(4)
})
