import type { DatabaseSync } from 'node:sqlite'
import { setTimeout as sleep } from 'node:timers/promises'
import { createBucket, findBucket } from '../buckets.ts'
import type { BucketId } from '../records.ts'
import { integer } from '../rows.ts'
import { seedItem } from '../seed-items.ts'
import { createSeedPictures } from '../seed-pictures.ts'
import { openDataDirectory } from './data-directory.ts'
import { prepareMediaRows } from './media-rows.ts'
import { prepareRanks } from './ranks.ts'
import { one } from './rows.ts'
import { asFault } from './sqlite-errors.ts'
import { createRun } from './statements.ts'
import { runTransaction } from './transaction.ts'

/** Rows of one transaction. It takes about 20 ms, during which a running server's writes wait. */
const chunk = 1_000
/** Milliseconds between two transactions, in which a waiting server can write (see transaction.ts). */
const gap = 3

export interface SeedOptions {
  readonly directory: string
  /** The bucket's name; the bucket is created if it does not exist. */
  readonly bucket: string
  readonly items: number
  /** Every n-th of the new items is deleted again. */
  readonly deleteEvery?: number
  /** Whether the items are small pictures with bytes. */
  readonly pictures?: boolean
  readonly onProgress?: (done: number, of: number) => void
}

/** Adds rows without bytes, or small pictures, to a bucket; safe while a server is running. Returns the bucket's new total. */
export async function seedBucket(options: SeedOptions): Promise<{ total: number }> {
  const db = openDataDirectory(options.directory)
  try {
    return { total: await fill(db, options) }
  } catch (error) {
    throw asFault(error)
  } finally {
    db.close()
  }
}

async function fill(db: DatabaseSync, options: SeedOptions): Promise<number> {
  const { items, deleteEvery = Number.POSITIVE_INFINITY, onProgress = () => {} } = options
  const create = options.pictures ? createSeedPictures() : seedItem
  const media = prepareMediaRows(db, prepareRanks(db))
  const bucket = db.prepare('SELECT next_seq, total FROM buckets WHERE id = ?')
  const run = createRun(db)
  const bucketId = runTransaction(db, () => {
    run(createBucket({ name: options.bucket, settings: {}, createdAt: Date.now() }))
    return run(findBucket(options.bucket))
  })
  if (bucketId === null) throw new Error('the bucket of the new items does not exist')

  for (let done = 0; done < items; ) {
    const count = Math.min(chunk, items - done)
    runTransaction(db, () => addChunk(bucketId, done, count))
    done += count
    onProgress(done, items)
    await sleep(gap)
  }
  return integer(one(bucket, bucketId) ?? [], 1)

  function addChunk(bucketId: BucketId, done: number, count: number): void {
    // Another writer may have appended since the last chunk, so the next number is read under the lock.
    const nextSeq = integer(one(bucket, bucketId) ?? [], 0)
    const now = Date.now()
    const indexes = Array.from({ length: count }, (_, index) => index)
    const deleted = indexes.filter((index) => (done + index + 1) % deleteEvery === 0)
    media.append(
      bucketId,
      indexes.map((index) => create(done + index, now)),
    )
    media.remove(
      bucketId,
      deleted.map((index) => nextSeq + index),
    )
  }
}
