import { settingValues } from '../bucket-settings.ts'
import type { BucketId, BucketSettings } from '../records.ts'
import { integer } from '../rows.ts'
import type { NewToken } from '../token-records.ts'
import type { Session } from './session.ts'

/** Changes the given settings; false if there is no such bucket. */
export async function setBucket(
  session: Session,
  name: string,
  settings: Partial<BucketSettings>,
): Promise<boolean> {
  const values = settingValues(settings)
  const assignments = values.map(({ column }, index) => `, ${column} = $${index + 2}`).join('')
  const statement = `UPDATE buckets SET name = name${assignments} WHERE name = $1 AND id > 0`
  return (await session.change(statement, name, ...values.map(({ value }) => value))) === 1
}

/** Creates a bucket; false if it exists. Waits for a transaction that is creating it. */
export const createBucket = async (
  session: Session,
  { bucket, createdAt }: Pick<NewToken, 'bucket' | 'createdAt'>,
): Promise<boolean> =>
  (await session.change(
    'INSERT INTO buckets (name, created_at) VALUES ($1, $2) ON CONFLICT (name) DO NOTHING',
    bucket,
    createdAt,
  )) === 1

/** Returns the id of the bucket, which cannot be deleted until the end of the transaction. */
export async function holdBucket(session: Session, name: string): Promise<BucketId> {
  const [row = []] = await session.run('SELECT id FROM buckets WHERE name = $1 FOR KEY SHARE', name)
  return integer(row, 0) as BucketId
}
