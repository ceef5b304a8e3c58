import { createHash, randomBytes } from 'node:crypto'
import { expect, test } from 'vitest'
import type { OpenBlob } from '../../src/storage/blobs/blobs.ts'
import { createChunkReader, hashBlob } from '../../src/upkeep/copies.ts'
import { storeBytes } from '../storage/blobs/blob-contract.ts'
import { type TemporaryStore, temporaryStore } from '../storage/blobs/temporary-store.ts'
import { withMethods } from '../with-methods.ts'

/** Bytes of one read. */
const block = 256 * 1024

const sha256 = (bytes: Uint8Array) => createHash('sha256').update(bytes).digest('hex')

async function opened({ store }: TemporaryStore, bytes: Buffer): Promise<OpenBlob> {
  const blob = await store.open(await storeBytes(store, bytes))
  if (blob === null) throw new Error('the blob was stored')
  return blob
}

test('F6 files of every length that are read at the same time have their own bytes', async () => {
  await using temporary = await temporaryStore()
  const readChunks = createChunkReader()
  const lengths = [0, 1, block - 1, block, block + 1, 2 * block - 1, 2 * block, 2 * block + 1, 1_000_000]
  // Twice, so that the second reads use the memory of the first ones.
  for (let times = 0; times < 2; times += 1) {
    const files = lengths.map((length) => randomBytes(length))
    const blobs = []
    for (const bytes of files) blobs.push(await opened(temporary, bytes))
    const hashes = await Promise.all(blobs.map((blob) => hashBlob(blob, readChunks)))
    expect(hashes.map((hash) => hash.toString('hex'))).toEqual(files.map(sha256))
  }
  expect(temporary.openFiles()).toEqual([])
})

test('F6 the memory of a file whose reader stopped is not in use when another file gets it', async () => {
  await using temporary = await temporaryStore()
  const readChunks = createChunkReader()
  const [left, read] = [randomBytes(3 * block), randomBytes(3 * block)]
  for await (const chunk of readChunks(await opened(temporary, left))) {
    expect(left.subarray(0, block).equals(chunk)).toBe(true)
    break
  }
  expect(temporary.openFiles()).toEqual([])
  expect((await hashBlob(await opened(temporary, read), readChunks)).toString('hex')).toBe(sha256(read))
})

test('B9 a read that fails while the bytes before it are processed is reported, and the file is closed', async () => {
  await using temporary = await temporaryStore()
  const blob = await opened(temporary, randomBytes(3 * block))
  const failure = new Error('the disk failed')
  const failing: OpenBlob = withMethods(blob, {
    read: async (into, position) => {
      if (position > 0) throw failure
      await blob.read(into, position)
    },
  })
  const lengths: number[] = []
  const reading = (async () => {
    for await (const chunk of createChunkReader()(failing)) {
      lengths.push(chunk.byteLength)
      await new Promise(setImmediate)
    }
  })()
  await expect(reading).rejects.toBe(failure)
  expect(lengths).toEqual([block])
  expect(temporary.openFiles()).toEqual([])
})
