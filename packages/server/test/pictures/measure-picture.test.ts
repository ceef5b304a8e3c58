import { expect, test } from 'vitest'
import { newItemId } from '../../src/core/ids.ts'
import { PictureOverLimits, PictureWorkersBusy } from '../../src/pictures/picture-queue.ts'
import type { PictureResult, PictureTask } from '../../src/pictures/picture-task.ts'
import { measurePictureOperation } from '../../src/pictures/received-pictures.ts'
import { shareContent } from '../../src/storage/blobs/memory-blob.ts'
import type { BucketId } from '../../src/storage/catalog/records.ts'

const blob = {
  id: newItemId(),
  handle: 'tmp/x',
  size: 1,
  sha256: new Uint8Array(32),
  head: new Uint8Array(1),
}

/** Measures with this worker, and records its tasks. */
function measuring(run: () => Promise<PictureResult>) {
  const tasks: PictureTask[] = []
  const buckets: string[] = []
  const measure = measurePictureOperation({
    blobs: { share: async ({ handle }) => shareContent({ type: 'file', path: `/data/${handle}` }) },
    workers: {
      run(task, bucket = '') {
        tasks.push(task)
        buckets.push(bucket)
        return run()
      },
    },
  })
  return { measure, tasks, buckets }
}

const bucketId = 7 as BucketId
const size = { width: 3, height: 2 }

test('V8, V12 a picture is measured from its file, in the turn of its bucket', async () => {
  const { measure, tasks, buckets } = measuring(async () => ({ outcome: 'measured', size }))
  expect(await measure(blob, bucketId)).toEqual(size)
  expect([tasks, buckets]).toEqual([[{ type: 'measure', picture: '/data/tmp/x' }], ['7']])
})

test('V8 a picture that is received into memory is measured from its bytes', async () => {
  const { measure, tasks } = measuring(async () => ({ outcome: 'measured', size }))
  const bytes = new Uint8Array(1)
  expect(await measure({ bytes, size: 1, sha256: new Uint8Array(32), head: bytes }, bucketId)).toEqual(size)
  expect(tasks).toEqual([{ type: 'measure', picture: bytes }])
})

test.each([
  ['cannot be read', async () => ({ outcome: 'unreadable' }) as const],
  ['cannot be read on this machine', async () => ({ outcome: 'unsupported', reason: 'x' }) as const],
  ['exceeds the limits', () => Promise.reject(new PictureOverLimits('x'))],
  ['exceeds the queue timeout', () => Promise.reject(new PictureWorkersBusy('x'))],
])('V8 a picture that %s has no size, and the upload succeeds', async (_what, run) => {
  expect(await measuring(run).measure(blob, bucketId)).toBeNull()
})
