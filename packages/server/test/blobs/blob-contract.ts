import { createHash, randomBytes } from 'node:crypto'
import { buffer } from 'node:stream/consumers'
import { describe, expect, test } from 'vitest'
import { type BlobStore, headLength, type ReceivedBlob } from '../../src/blobs/blobs.ts'
import { Fault } from '../../src/core/fault.ts'
import { type MediaId, newMediaId } from '../../src/core/media-id.ts'

export interface OpenedStore extends AsyncDisposable {
  readonly store: BlobStore
}

const noLimit = Number.MAX_SAFE_INTEGER

/** Yields the bytes in chunks of `length`, then throws `failure` if there is one. */
export async function* chunksOf(
  bytes: Uint8Array,
  length = 1000,
  failure?: Error,
): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < bytes.byteLength; at += length) yield bytes.subarray(at, at + length)
  if (failure) throw failure
}

export const receiveBytes = (store: BlobStore, bytes: Uint8Array): Promise<ReceivedBlob> =>
  store.receive(chunksOf(bytes), noLimit)

export async function storeBytes(store: BlobStore, bytes: Uint8Array): Promise<MediaId> {
  const id = newMediaId()
  await store.commit(await receiveBytes(store, bytes), id)
  return id
}

export async function readBytes(store: BlobStore, id: MediaId): Promise<Buffer | null> {
  const blob = await store.open(id)
  return blob === null ? null : buffer(blob.stream(0, blob.size - 1))
}

/** The behaviour of every blob engine. */
export function describeBlobStore(engine: string, openStore: () => Promise<OpenedStore>): void {
  describe(`${engine}: blobs`, () => {
    const sizes = [0, 1, headLength - 1, headLength, headLength + 1, 65_536, 1_048_577]

    test.each(sizes)(
      'B1, U5: %d bytes are read back unchanged, with their size and SHA-256',
      async (size) => {
        await using opened = await openStore()
        const bytes = randomBytes(size)
        const received = await opened.store.receive(chunksOf(bytes, 8191), noLimit)
        expect(received.size).toBe(size)
        expect(Buffer.from(received.sha256)).toEqual(createHash('sha256').update(bytes).digest())
        expect(received.head.length).toBeGreaterThanOrEqual(Math.min(size, headLength))
        expect(Buffer.from(received.head)).toEqual(bytes.subarray(0, received.head.length))

        const id = newMediaId()
        await opened.store.commit(received, id)
        expect((await readBytes(opened.store, id))?.equals(bytes)).toBe(true)
      },
    )

    test('B1: empty chunks and chunks of one byte give the same bytes', async () => {
      await using opened = await openStore()
      const bytes = randomBytes(300)
      const received = await opened.store.receive(
        (async function* () {
          for await (const chunk of chunksOf(bytes, 1)) {
            yield new Uint8Array(0)
            yield chunk
          }
        })(),
        300,
      )
      expect(Buffer.from(received.head)).toEqual(bytes)
      expect(Buffer.from(received.sha256)).toEqual(createHash('sha256').update(bytes).digest())
    })

    test('B3: any range of the bytes can be read, first and last byte included', async () => {
      await using opened = await openStore()
      const bytes = randomBytes(700_000)
      const id = await storeBytes(opened.store, bytes)
      for (const [start, end] of [
        [0, 0],
        [1, 5],
        [262_143, 262_144],
        [100, 600_000],
        [699_999, 699_999],
      ] as const) {
        const blob = await opened.store.open(id)
        expect(blob?.size).toBe(700_000)
        const read = blob && (await buffer(blob.stream(start, end)))
        expect(read?.equals(bytes.subarray(start, end + 1))).toBe(true)
      }
    })

    test('B1: concurrent reads of one blob return its bytes', async () => {
      await using opened = await openStore()
      const bytes = randomBytes(300_000)
      const id = await storeBytes(opened.store, bytes)
      const reads = await Promise.all(Array.from({ length: 20 }, () => readBytes(opened.store, id)))
      expect(reads.every((read) => read?.equals(bytes))).toBe(true)
    })

    test('U6: a file of exactly the limit is accepted, one byte more is refused', async () => {
      await using opened = await openStore()
      const { store } = opened
      const exact = await store.receive(chunksOf(randomBytes(70_000)), 70_000)
      expect(exact.size).toBe(70_000)
      const error = await store
        .receive(chunksOf(randomBytes(70_001)), 70_000)
        .catch((error: unknown) => error)
      expect(error).toBeInstanceOf(Fault)
      expect(error).toMatchObject({ code: 'file-too-large', message: expect.stringContaining('70000') })
      const empty = await store.receive(chunksOf(randomBytes(0)), 0)
      await store.discard(empty)
      expect(await store.recover()).toBe(1)
    })

    test('U6: bytes past the limit are not read, and the source is closed', async () => {
      await using opened = await openStore()
      let taken = 0
      let closed = false
      async function* endless(): AsyncGenerator<Uint8Array> {
        try {
          for (;;) {
            taken += 1
            yield new Uint8Array(1000)
          }
        } finally {
          closed = true
        }
      }
      await expect(opened.store.receive(endless(), 2500)).rejects.toThrow(Fault)
      expect({ taken, closed }).toEqual({ taken: 3, closed: true })
    })

    test('U10: a source that fails fails the upload with the same error and leaves no bytes', async () => {
      await using opened = await openStore()
      const failure = new Error('the client went away')
      await expect(opened.store.receive(chunksOf(randomBytes(50_000), 1000, failure), noLimit)).rejects.toBe(
        failure,
      )
      expect(await opened.store.recover()).toBe(0)
    })

    test('received bytes can be read at any position before they are committed', async () => {
      await using opened = await openStore()
      const bytes = randomBytes(50_000)
      const blob = await opened.store.peek(await receiveBytes(opened.store, bytes))
      expect(blob.size).toBe(50_000)
      const slice = Buffer.from(await blob.slice(40_000, 40_100).arrayBuffer())
      expect(slice.equals(bytes.subarray(40_000, 40_100))).toBe(true)
    })

    test('an id has no bytes before its commit and after its removal', async () => {
      await using opened = await openStore()
      const id = newMediaId()
      expect(await opened.store.open(id)).toBeNull()
      await opened.store.commit(await receiveBytes(opened.store, randomBytes(10)), id)
      expect(await readBytes(opened.store, id)).toHaveLength(10)
      await opened.store.remove(id)
      expect(await opened.store.open(id)).toBeNull()
    })

    test('removing or discarding missing bytes succeeds', async () => {
      await using opened = await openStore()
      const id = await storeBytes(opened.store, randomBytes(10))
      await opened.store.remove(id)
      await opened.store.remove(id)
      await opened.store.remove(newMediaId())
      const received = await receiveBytes(opened.store, randomBytes(10))
      await opened.store.discard(received)
      await opened.store.discard(received)
    })

    test('discarded bytes cannot be committed', async () => {
      await using opened = await openStore()
      const received = await receiveBytes(opened.store, randomBytes(10))
      await opened.store.discard(received)
      const id = newMediaId()
      await expect(opened.store.commit(received, id)).rejects.toThrow()
      expect(await opened.store.open(id)).toBeNull()
    })

    test('recovery deletes bytes that were received and not committed, and no others', async () => {
      await using opened = await openStore()
      const bytes = randomBytes(20)
      const id = await storeBytes(opened.store, bytes)
      for (const size of [70_000, 70_001]) await opened.store.receive(chunksOf(randomBytes(size)), 100_000)
      expect(await opened.store.recover()).toBe(2)
      expect(await opened.store.recover()).toBe(0)
      expect(await readBytes(opened.store, id)).toEqual(bytes)
    })

    test('concurrent receives, commits and removals do not affect one another', async () => {
      await using opened = await openStore()
      const all = Array.from({ length: 60 }, (_, index) => randomBytes(index * 997))
      const ids = await Promise.all(all.map((bytes) => storeBytes(opened.store, bytes)))
      await Promise.all(ids.filter((_, index) => index % 3 === 0).map((id) => opened.store.remove(id)))
      const read = await Promise.all(ids.map((id) => readBytes(opened.store, id)))
      expect(read.map((bytes) => bytes?.length ?? null)).toEqual(
        all.map((bytes, index) => (index % 3 === 0 ? null : bytes.length)),
      )
      expect(read.every((bytes, index) => index % 3 === 0 || bytes?.equals(all[index] ?? bytes))).toBe(true)
    })
  })
}
