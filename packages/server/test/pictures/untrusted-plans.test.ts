import { expect, test } from 'vitest'
import { PictureOverLimits } from '../../src/pictures/picture-queue.ts'
import type { PictureWorkers } from '../../src/pictures/picture-workers.ts'
import { removeMetadataOperation } from '../../src/pictures/received-pictures.ts'
import { received } from '../../src/storage/blobs/received-file.ts'
import type { BucketId } from '../../src/storage/catalog/records.ts'

const removal = { contentType: 'image/jpeg', bucketId: 1 as BucketId, keepsTaken: false }

/** The removal with these metadata workers. It compares nothing. */
const removalWith = (run: PictureWorkers['run']) => {
  const unused = () => Promise.reject(new Error('the bytes are in memory'))
  return removeMetadataOperation({
    blobs: { openReceived: unused, receive: unused, share: unused, discard: unused },
    ...{ workers: { run }, comparisonWorkers: { run: unused }, tools: new Map(), now: Date.now },
  })
}
test.each([
  ['exceeds the time limit', 'overloaded', { isTimeout: true }],
  ['crashes', 'file-unreadable', {}],
])('X4 a file whose process %s is refused as %s', async (_what, code, reason) => {
  const remove = removalWith(() => Promise.reject(new PictureOverLimits('SIGKILL', reason)))
  await expect(remove(received(Buffer.alloc(9)), removal)).rejects.toMatchObject({ code })
})

test.each([
  ['has more bytes than allowed', [{ bytes: new Uint8Array(8 * 1024 * 1024 + 1) }]],
  ['has no length', [{ zeros: Number.NaN }]],
  ['copies what is not in the file', [{ from: 0, to: 101 }]],
  ['has too many parts', Array.from({ length: 100_001 }, () => ({ zeros: 0 }))],
])('X4 a plan of a process that %s is refused', async (_what, pieces) => {
  const remove = removalWith(async () => ({ outcome: 'planned', format: 'jpeg', pieces, reading: null }))
  const file = received(Buffer.alloc(100))
  await expect(remove(file, removal)).rejects.toMatchObject({ code: 'file-unreadable' })
})
