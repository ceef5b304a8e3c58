import type { BucketId } from '../records.ts'
import { integer } from '../rows.ts'
import { type SeededMedia, seedItem } from '../seed-items.ts'
import { createSeedPictures } from '../seed-pictures.ts'
import { lockBuckets } from './locked-buckets.ts'
import { appendMedia, removeNumbers } from './media-rows.ts'
import { openDatabase } from './open-database.ts'
import { asFault } from './postgres-errors.ts'
import type { Session } from './session.ts'
import { runTransaction } from './transaction.ts'
import { bytesArray } from './values.ts'

/** Rows of one transaction. It takes about 50 ms, during which a running server's writes to the bucket wait. */
const chunk = 1_000

interface SeedOptions {
  /** The URL of the database. */
  readonly url: string
  /** The bucket's name; the bucket is created if it does not exist. */
  readonly bucket: string
  readonly items: number
  /** Every n-th of the new items is deleted again. */
  readonly deleteEvery?: number
  /** Whether the items are small pictures with bytes. */
  readonly pictures?: boolean
  readonly onProgress?: (done: number, of: number) => void
}

/** Adds rows without bytes, or small pictures, to a bucket; safe while servers are running. Returns the bucket's new total. */
export async function seedPostgresBucket(options: SeedOptions): Promise<{ total: number }> {
  const { url, bucket, items, deleteEvery = Number.POSITIVE_INFINITY, onProgress = () => {} } = options
  const create = options.pictures ? createSeedPictures() : seedItem
  const connections = await openDatabase(url, { readers: 1, writers: 1 })
  const inTransaction = <T>(work: (session: Session) => Promise<T>): Promise<T> =>
    runTransaction(connections, work)

  async function addChunk(session: Session, bucketId: BucketId, done: number, count: number) {
    const buckets = await lockBuckets(session, { ids: [bucketId], uploads: [], names: [] })
    const transaction = { session, buckets }
    const [row = []] = await session.run('SELECT next_seq FROM buckets WHERE id = $1', bucketId)
    const now = Date.now()
    const indexes = Array.from({ length: count }, (_, index) => index)
    const deleted = indexes.filter((index) => (done + index + 1) % deleteEvery === 0)
    const added = indexes.map((index) => create(done + index, now))
    await appendMedia(transaction, bucketId, added)
    await setPreviews(session, added)
    await removeNumbers(
      transaction,
      bucketId,
      deleted.map((index) => integer(row, 0) + index),
    )
    return buckets.get(bucketId).items
  }

  try {
    const bucketId = await inTransaction((session) => ensureBucket(session, bucket))
    let total = 0
    for (let done = 0; done < items; ) {
      const count = Math.min(chunk, items - done)
      const before = done
      total = await inTransaction((session) => addChunk(session, bucketId, before, count))
      done += count
      onProgress(done, items)
    }
    return { total }
  } catch (error) {
    throw asFault(error)
  } finally {
    await connections.close()
  }
}

/** Records the ThumbHashes of generated pictures. */
async function setPreviews(session: Session, added: readonly SeededMedia[]): Promise<void> {
  const previews = added.flatMap(({ id, thumbhash }) => (thumbhash ? [{ id, thumbhash }] : []))
  if (previews.length === 0) return
  await session.run(
    `UPDATE media SET thumbhash = preview.thumbhash
    FROM unnest($1::text[], $2::bytea[]) AS preview (id, thumbhash) WHERE media.id = preview.id`,
    previews.map(({ id }) => id),
    bytesArray(previews.map(({ thumbhash }) => thumbhash)),
  )
}

async function ensureBucket(session: Session, name: string): Promise<BucketId> {
  const create = 'INSERT INTO buckets (name, created_at) VALUES ($1, $2) ON CONFLICT (name) DO NOTHING'
  await session.run(create, name, Date.now())
  const [row = []] = await session.run('SELECT id FROM buckets WHERE name = $1', name)
  return integer(row, 0) as BucketId
}
