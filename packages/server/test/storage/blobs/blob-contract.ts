import { createHash, randomBytes } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { buffer } from 'node:stream/consumers'
import { describe, expect, test } from 'vitest'
import { Fault } from '../../../src/core/faults.ts'
import { type ItemId, MalformedId, newItemId } from '../../../src/core/ids.ts'
import type { VariantKey } from '../../../src/core/variants.ts'
import {
  type BlobStore,
  headLength,
  type LocalBytes,
  type PartialUpload,
} from '../../../src/storage/blobs/blobs.ts'
import type { ReceivedBlob } from '../../../src/storage/blobs/received-file.ts'

export interface OpenedStore extends AsyncDisposable {
  readonly store: BlobStore
  /** The number of blobs in the store, received or committed. */
  readonly count: () => Promise<number>
  /** A new resumable upload of this length. */
  readonly newUpload: (length: number | null) => Promise<PartialUpload>
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

export const receiveBytes = (
  store: BlobStore,
  bytes: Uint8Array,
  id: ItemId = newItemId(),
): Promise<ReceivedBlob> => store.receive(id, chunksOf(bytes), noLimit)

export async function storeBytes(
  store: BlobStore,
  bytes: Uint8Array,
  id: ItemId = newItemId(),
): Promise<ItemId> {
  await store.commit([await receiveBytes(store, bytes, id)])
  return id
}

export async function readBytes(store: BlobStore, id: ItemId): Promise<Buffer | null> {
  const blob = await store.open(id)
  return blob === null ? null : buffer(blob.stream(0, blob.size - 1))
}

const sharedBytes = async ({ content }: LocalBytes): Promise<Buffer> =>
  content.type === 'file' ? await readFile(content.path) : Buffer.from(content.bytes)

/** The behaviour of every blob engine. */
export function describeBlobStore(engine: string, openStore: () => Promise<OpenedStore>): void {
  describe(`${engine}: blobs`, () => {
    const sizes = [0, 1, headLength - 1, headLength, headLength + 1, 65_536, 1_048_577]

    test.each(sizes)(
      'B1, U5: %d bytes are read back unchanged, with their size and SHA-256',
      async (size) => {
        await using opened = await openStore()
        const bytes = randomBytes(size)
        const id = newItemId()
        const received = await opened.store.receive(id, chunksOf(bytes, 8191), noLimit)
        expect(received.id).toBe(id)
        expect(received.size).toBe(size)
        expect(Buffer.from(received.sha256)).toEqual(createHash('sha256').update(bytes).digest())
        expect(received.head.length).toBeGreaterThanOrEqual(Math.min(size, headLength))
        expect(Buffer.from(received.head)).toEqual(bytes.subarray(0, received.head.length))

        await opened.store.commit([received])
        expect((await readBytes(opened.store, id))?.equals(bytes)).toBe(true)
      },
    )

    test('B1: empty chunks and chunks of one byte give the same bytes', async () => {
      await using opened = await openStore()
      const bytes = randomBytes(300)
      const received = await opened.store.receive(
        newItemId(),
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
      const exact = await store.receive(newItemId(), chunksOf(randomBytes(70_000)), 70_000)
      expect(exact.size).toBe(70_000)
      const error = await store
        .receive(newItemId(), chunksOf(randomBytes(70_001)), 70_000)
        .catch((error: unknown) => error)
      expect(error).toBeInstanceOf(Fault)
      expect(error).toMatchObject({ code: 'file-too-large', message: expect.stringContaining('70000') })
      const empty = await store.receive(newItemId(), chunksOf(randomBytes(0)), 0)
      await store.discard([empty])
      expect(await opened.count()).toBe(1)
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
      await expect(opened.store.receive(newItemId(), endless(), 2500)).rejects.toThrow(Fault)
      expect({ taken, closed }).toEqual({ taken: 3, closed: true })
    })

    test('U10: a source that fails fails the upload with the same error and leaves no bytes', async () => {
      await using opened = await openStore()
      const failure = new Error('the client went away')
      const failing = chunksOf(randomBytes(50_000), 1000, failure)
      await expect(opened.store.receive(newItemId(), failing, noLimit)).rejects.toBe(failure)
      expect(await opened.count()).toBe(0)
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
      const id = newItemId()
      expect(await opened.store.open(id)).toBeNull()
      await storeBytes(opened.store, randomBytes(10), id)
      expect(await readBytes(opened.store, id)).toHaveLength(10)
      await opened.store.remove(id)
      expect(await opened.store.open(id)).toBeNull()
    })

    test('removing or discarding missing bytes succeeds', async () => {
      await using opened = await openStore()
      const id = await storeBytes(opened.store, randomBytes(10))
      await opened.store.remove(id)
      await opened.store.remove(id)
      await opened.store.remove(newItemId())
      const received = await receiveBytes(opened.store, randomBytes(10))
      await opened.store.discard([received])
      await opened.store.discard([received])
    })

    test('discarded bytes cannot be committed', async () => {
      await using opened = await openStore()
      const received = await receiveBytes(opened.store, randomBytes(10))
      await opened.store.discard([received])
      await expect(opened.store.commit([received])).rejects.toThrow()
      expect(await opened.store.open(received.id)).toBeNull()
    })

    test('U2 bytes of several items are committed together, and discarding committed bytes removes them', async () => {
      await using opened = await openStore()
      const all = [randomBytes(10), randomBytes(20), randomBytes(30)]
      const received = await Promise.all(all.map((bytes) => receiveBytes(opened.store, bytes)))
      await opened.store.commit(received)
      const [first, ...others] = received
      if (!first) throw new Error('three blobs')
      expect(await readBytes(opened.store, first.id)).toEqual(all[0])
      await opened.store.discard(others)
      expect(await opened.count()).toBe(1)
    })

    // The paths lead to `outside`, beside the directory of the store.
    test.each(['../../outside', '../outside', '..', '', `${newItemId()}/../../../outside`, 'A'.repeat(28)])(
      'B8 the id %j of a row never becomes a path or a key',
      async (text) => {
        await using opened = await openStore()
        const { store } = opened
        const [id, key] = [text as ItemId, 'thumb-1' as VariantKey]
        const bytes = Buffer.from('tampered')
        const operations: readonly (() => Promise<unknown>)[] = [
          async () => store.commit([await receiveBytes(store, bytes, id)]),
          async () => store.open(id),
          async () => store.remove(id),
          async () => store.removeInterrupted(id),
          async () => store.variants.store(id, key, bytes),
          async () => store.variants.store(id, key, Buffer.alloc(100_000)),
          async () => store.variants.open(id, key),
          async () => store.variants.remove(id),
        ]
        for (const operation of operations) await expect(operation()).rejects.toThrow(MalformedId)
      },
    )

    test('V8 received bytes can be shared with other processes', async () => {
      await using opened = await openStore()
      const bytes = randomBytes(100_000)
      const received = await receiveBytes(opened.store, bytes)
      const start = await opened.store.share(received, 1_000)
      expect((await sharedBytes(start)).subarray(0, 1_000)).toEqual(bytes.subarray(0, 1_000))
      await start.release()
      const whole = await opened.store.share(received, Number.POSITIVE_INFINITY)
      expect(whole.isWhole).toBe(true)
      expect(await sharedBytes(whole)).toEqual(bytes)
      await whole.release()
      await opened.store.commit([received])
      const blob = await opened.store.open(received.id)
      await blob?.close()
      const committed = await blob?.share()
      expect(committed && (await sharedBytes(committed))).toEqual(bytes)
      await committed?.release()
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
