import type { Actor } from '../../core/actor.ts'
import { bucketCreateEvent, bucketSetEvent } from '../audit-log/events.ts'
import { changedSettings, readBucketSettings, settingColumns, settingValues } from '../bucket-settings.ts'
import type { Audited } from '../changes.ts'
import type { BucketId, BucketSettings } from '../records.ts'
import { integer, type Row } from '../rows.ts'
import { recordEvents } from './audit-log.ts'
import type { Session } from './session.ts'

// Changes are recorded in the audit log, if they have an actor.

/** Changes the given settings; false if there is no such bucket. */
export async function setBucket(
  session: Session,
  name: string,
  settings: Partial<BucketSettings>,
  by?: Actor,
): Promise<boolean> {
  const columns = ['id', ...settingColumns].join(', ')
  const select = `SELECT ${columns} FROM buckets WHERE name = $1 AND id > 0 FOR NO KEY UPDATE`
  const [row] = await session.run(select, name)
  if (row === undefined) return false
  const changed = changedSettings(readBucketSettings(row, 1), settings)
  const values = settingValues(changed)
  if (values.length === 0) return true
  const assignments = values.map(({ column }, index) => `${column} = $${index + 2}`).join(', ')
  await session.run(
    `UPDATE buckets SET ${assignments} WHERE id = $1`,
    idOf(row),
    ...values.map(({ value }) => value),
  )
  if (by !== undefined) await recordEvents(session, [bucketSetEvent(idOf(row), name, changed, by)])
  return true
}

/** Creates a bucket; false if it exists. Waits for a transaction that is creating it. */
export async function createBucket(
  session: Session,
  { bucket, settings = {}, createdAt, by }: NewBucket,
): Promise<boolean> {
  const statement =
    'INSERT INTO buckets (name, created_at) VALUES ($1, $2) ON CONFLICT (name) DO NOTHING RETURNING id'
  const [row] = await session.run(statement, bucket, createdAt)
  if (row === undefined) return false
  if (by !== undefined) await recordEvents(session, [bucketCreateEvent(idOf(row), bucket, settings, by)])
  await setBucket(session, bucket, settings)
  return true
}

interface NewBucket extends Audited {
  readonly bucket: string
  readonly settings?: Partial<BucketSettings>
  readonly createdAt: number
}

const idOf = (row: Row) => integer(row, 0) as BucketId

/** Returns the id of the bucket, which cannot be deleted until the end of the transaction. */
export async function holdBucket(session: Session, name: string): Promise<BucketId> {
  const id = await findBucket(session, name)
  if (id === null) throw new Error('the bucket of a new token does not exist')
  return id
}

/** As holdBucket; null if there is no such bucket. */
export async function findBucket(session: Session, name: string): Promise<BucketId | null> {
  const [row] = await session.run('SELECT id FROM buckets WHERE name = $1 AND id > 0 FOR KEY SHARE', name)
  return row ? (integer(row, 0) as BucketId) : null
}
