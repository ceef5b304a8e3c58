import type { DatabaseSync } from 'node:sqlite'
import type { BucketId } from '../catalog.ts'
import { integer, one } from './rows.ts'

/** Answers the bucket's id and makes the bucket if it does not exist; to be called within a transaction. */
export type EnsureBucket = (name: string, createdAt: number) => BucketId

export function prepareEnsureBucket(db: DatabaseSync): EnsureBucket {
  const insert = db.prepare('INSERT INTO buckets (name, created_at) VALUES (?, ?) ON CONFLICT DO NOTHING')
  const select = db.prepare('SELECT id FROM buckets WHERE name = ?')
  return (name, createdAt) => {
    insert.run(name, createdAt)
    return integer(one(select, name) ?? [], 0) as BucketId
  }
}
