import { Readable } from 'node:stream'
import { expect, test } from 'vitest'
import { createItemIds } from '../core/ids.ts'
import { readTakenOperation } from './received-pictures.ts'

/** A JPEG file of 13 MB whose segments are as large as they can be, with none of a time. */
const segment = Buffer.alloc(65_537)
segment.write('ffe2ffff', 'hex')
const file = Buffer.concat([Buffer.of(0xff, 0xd8), ...Array.from({ length: 200 }, () => segment)])

test('M9 a file of the blob store is read a limited number of times', async () => {
  let [reads, closed] = [0, 0]
  const readTaken = readTakenOperation({
    now: Date.now,
    blobs: {
      openReceived: async () => ({
        size: file.length,
        content: { type: 'bytes', bytes: file },
        async read(into, position) {
          reads += 1
          into.set(file.subarray(position, position + into.byteLength))
        },
        stream: () => Readable.from([]),
        share: () => Promise.reject(new Error('not shared')),
        async close() {
          closed += 1
        },
      }),
    },
  })
  const received = {
    ...{ id: createItemIds(Date.now)(), handle: 'x', size: file.length, head: file.subarray(0, 4_096) },
    sha256: Buffer.alloc(32),
  }
  expect(await readTaken(received, 'image/jpeg')).toEqual({ taken: null, isRead: true })
  expect([reads, closed]).toEqual([16, 1])
})
