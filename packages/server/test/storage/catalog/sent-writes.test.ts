import { expect, test } from 'vitest'
import { newUploadId } from '../../../src/core/ids.ts'
import { service } from '../../../src/core/token-rules.ts'
import { buffersOf } from '../../../src/storage/catalog/engines/sqlite/sqlite-writer.ts'
import type { Write } from '../../../src/storage/catalog/nouns.ts'
import type { AddedItem, BucketId, IdempotentRequest, TokenId } from '../../../src/storage/catalog/records.ts'
import { completeItem, newItem, withBytes } from './samples.ts'

const bucketId = 1 as BucketId

/** Items with and without everything that they can lack. Two buffers have bytes of the first three in turn, and one has all their hashes. */
function newItemsOfEveryKind(): AddedItem[] {
  const [contents, others, hashes] = [new ArrayBuffer(64), new ArrayBuffer(64), new ArrayBuffer(96)]
  new Uint8Array(contents).set(Buffer.from('first, third'))
  new Uint8Array(others).set(Buffer.from('second'))
  new Uint8Array(hashes).set(Array.from({ length: 96 }, (_, index) => index))
  const hash = (index: number) => new Uint8Array(hashes, index * 32, 32)
  const complete: Required<Omit<AddedItem, 'by'>> = {
    ...completeItem(hash(2)),
    bytes: new Uint8Array(contents, 0, 5),
  }
  const unknown = { filename: null, extension: null, width: null, height: null }
  return [
    complete,
    { ...newItem({ sha256: hash(0) }), bytes: new Uint8Array(others, 0, 6) },
    { ...newItem({ sha256: hash(1) }), bytes: new Uint8Array(contents, 7, 5) },
    { ...newItem({ size: 0, labels: { album: '42' } }), bytes: new Uint8Array(0) },
    { ...newItem({ expiresAt: 1_800_000_000_000 }), bytes: null },
    { ...newItem(unknown), bytes: null },
  ]
}

const request: IdempotentRequest = {
  tokenId: 'camera' as TokenId,
  key: 'k',
  fingerprint: new Uint8Array(32),
  now: 1,
  expiresAt: 2,
}

/** What the thread receives of writes that are sent together. Takes the buffers away, as the thread does. */
function send(writes: readonly Write[]): Write[] {
  const transfer = writes.flatMap(buffersOf)
  const received: Write[] = structuredClone([...writes], { transfer })
  for (const buffer of transfer) expect(buffer.detached).toBe(true)
  return received
}

test.each<[string, () => Write, number]>([
  ['items', () => ({ kind: 'addItems', input: [bucketId, newItemsOfEveryKind(), service] }), 3],
  [
    'items of a request with a key',
    () => ({ kind: 'addItemsOnce', input: [bucketId, newItemsOfEveryKind(), request] }),
    3,
  ],
  ['no items', () => ({ kind: 'addItems', input: [bucketId, []] }), 0],
  [
    'a finished upload',
    () => ({
      kind: 'finishUpload',
      input: [newUploadId(), withBytes(newItem()), 1, service, 2],
    }),
    1,
  ],
  ['a write without bytes', () => ({ kind: 'forgetRequests', input: [1] }), 0],
  ['a write without an input', () => ({ kind: 'awaitEarlierWrites', input: [] }), 0],
])(
  'the writer thread receives %s as they were sent, and takes over each buffer of bytes once',
  (_, create, buffers) => {
    const write = create()
    const expected = structuredClone(write)
    expect(buffersOf(write)).toHaveLength(buffers)
    expect(send([write])).toStrictEqual([expected])
  },
)

test('the hashes of two writes can share a buffer, and the sender keeps them for its response', () => {
  const [first, second] = [newItemsOfEveryKind(), newItemsOfEveryKind()]
  const sha256 = first[0]?.sha256
  if (sha256 === undefined) throw new Error('there is an item')
  const writes = [first, second.map((added) => ({ ...added, sha256 }))].map(
    (items): Write => ({ kind: 'addItems', input: [bucketId, items] }),
  )
  const expected = structuredClone(writes)
  expect(send(writes)).toStrictEqual(expected)
  expect(sha256).toStrictEqual(Uint8Array.from({ length: 32 }, (_, index) => 64 + index))
})
