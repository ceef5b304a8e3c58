import type { DatabaseSync } from 'node:sqlite'
import type { MediaId } from '../../core/media-id.ts'
import type { BucketId, NewMedia, NewToken, TokenId } from '../catalog.ts'
import { prepareEnsureBucket } from './buckets.ts'
import { prepareMediaRows } from './media-rows.ts'
import { prepareRanks } from './ranks.ts'
import { integer, one } from './rows.ts'

/** Every change of the catalog, by kind. Inputs and outputs are plain data: they cross threads. */
interface Changes {
  'add-media': { input: { bucketId: BucketId; items: readonly NewMedia[] }; output: undefined }
  'remove-media': { input: { bucketId: BucketId; id: MediaId }; output: boolean }
  'clear-tombstones': { input: { ids: readonly MediaId[] }; output: undefined }
  'add-token': { input: NewToken; output: undefined }
  'revoke-token': { input: { id: TokenId; at: number }; output: boolean }
  'touch-token': { input: { id: TokenId; at: number }; output: undefined }
  /** Changes nothing, and so shows that changes get through. */
  check: { input: null; output: undefined }
}

export type ChangeKind = keyof Changes

export interface Change<K extends ChangeKind = ChangeKind> {
  readonly kind: K
  readonly input: Changes[K]['input']
}

export type Output<K extends ChangeKind = ChangeKind> = Changes[K]['output']

/** What each kind does, on one connection, within a transaction that the caller opens and commits. */
export type ChangeFunctions = { readonly [K in ChangeKind]: (input: Changes[K]['input']) => Output<K> }

export const applyChange = <K extends ChangeKind>(functions: ChangeFunctions, change: Change<K>): Output<K> =>
  functions[change.kind](change.input)

export function prepareChanges(db: DatabaseSync): ChangeFunctions {
  const media = prepareMediaRows(db, prepareRanks(db))
  const ensureBucket = prepareEnsureBucket(db)
  const findSeq = db.prepare('SELECT seq FROM media WHERE id = ? AND bucket_id = ?')
  const addTombstone = db.prepare('INSERT INTO tombstones (id) VALUES (?)')
  const clearTombstone = db.prepare('DELETE FROM tombstones WHERE id = ?')
  const insertToken = db.prepare(`INSERT INTO tokens
    (id, bucket_id, name, hash, scopes, created_at, expires_at) VALUES (?, ?, ?, ?, ?, ?, ?)`)
  const revokeToken = db.prepare('UPDATE tokens SET revoked_at = coalesce(revoked_at, ?) WHERE id = ?')
  const touchToken = db.prepare('UPDATE tokens SET last_used_at = ? WHERE id = ?')

  return {
    'add-media'({ bucketId, items }) {
      media.append(bucketId, items)
    },

    'remove-media'({ bucketId, id }) {
      const row = one(findSeq, id, bucketId)
      if (!row) return false
      media.remove(bucketId, [integer(row, 0)])
      addTombstone.run(id)
      return true
    },

    'clear-tombstones'({ ids }) {
      for (const id of ids) clearTombstone.run(id)
    },

    'add-token'(token) {
      const bucketId = ensureBucket(token.bucket, token.createdAt)
      const { id, name, hash, scopes, createdAt, expiresAt } = token
      insertToken.run(id, bucketId, name, hash, scopes.join(' '), createdAt, expiresAt)
    },

    'revoke-token'({ id, at }) {
      return revokeToken.run(at, id).changes === 1
    },

    'touch-token'({ id, at }) {
      touchToken.run(at, id)
    },

    check() {},
  }
}
