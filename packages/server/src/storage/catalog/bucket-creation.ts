import { Fault } from '../../core/faults.ts'
import type { Actor } from '../../core/token-rules.ts'
import { type GrantedToken, insertToken, requireGrantor } from './access/tokens.ts'
import { insertBucket } from './buckets.ts'
import { auditedWritesOf } from './declarations.ts'
import type { BucketId, BucketSettings, TokenId } from './records.ts'
import { bucketIdOf, bytes, first, type Query, type Work } from './statements.ts'

/** A request with an idempotency key that creates a bucket. All have 32 bytes. */
interface BucketCreation {
  /** Identifies the key of its token. */
  readonly key: Uint8Array
  /** Differs for another content with the same key. */
  readonly fingerprint: Uint8Array
  /** Of it and the token of the request, the first token of the bucket is made, so that a repetition makes the same one. */
  readonly nonce: Uint8Array
}

interface NewBucket {
  readonly name: string
  readonly settings: Partial<BucketSettings>
  /** Milliseconds since 1970. */
  readonly createdAt: number
  /** Its first token; null for none. */
  readonly token: GrantedToken | null
  /** The service token that grants it, which must still be valid then. */
  readonly grantor?: TokenId
  /** Null for a request without a key. */
  readonly creation: BucketCreation | null
}

interface CreatedBucket {
  readonly id: BucketId
  /** The nonce of the first request with the key; null for one without. */
  readonly nonce: Uint8Array | null
}

/**
 * Creates a bucket, with its first token. A request with a key does so once: later ones get the same bucket, as long as it exists. Null if another
 * bucket has this name, or if the first token of a new bucket has expired. Throws Fault `idempotency-key-reused` if the fingerprint differs, and
 * `token-revoked` if the grantor is not valid any more.
 */
export function* createNewBucket(
  { name, settings, createdAt, token, grantor, creation }: NewBucket,
  by?: Actor,
): Work<CreatedBucket | null> {
  const repeated = creation === null ? null : yield* findCreated(creation)
  if (repeated !== null) return repeated
  if (hasExpired(token, createdAt)) return null
  const stored = creation && {
    key: creation.key,
    request: Buffer.concat([creation.fingerprint, creation.nonce]),
  }
  const id = yield* insertBucket(name, settings, createdAt, stored, by)
  // A request with the same key may have created it since the check.
  if (id === null) return creation === null ? null : yield* findCreated(creation)
  if (token !== null && grantor !== undefined) yield* requireGrantor(id, grantor, createdAt)
  if (token !== null) yield* insertToken(id, token, by)
  return { id, nonce: creation?.nonce ?? null }
}

/** Whether the first token of a bucket has expired when the bucket is created. */
export const hasExpired = (token: Pick<GrantedToken, 'expiresAt'> | null, createdAt: number): boolean =>
  token !== null && token.expiresAt !== null && token.expiresAt <= createdAt

function* findCreated({ key, fingerprint }: BucketCreation): Query<CreatedBucket | null> {
  const found = yield* first(
    (row) => ({ id: bucketIdOf(row, 0), request: bytes(row, 1) }),
    'SELECT id, creation FROM buckets WHERE creation_key = $1',
    key,
  )
  if (found === null) return null
  const { id, request } = found
  if (Buffer.compare(request.subarray(0, fingerprint.length), fingerprint) !== 0)
    throw new Fault(
      'idempotency-key-reused',
      'This Idempotency-Key was sent with another bucket before. Send a new key for another bucket.',
    )
  return { id, nonce: request.subarray(fingerprint.length) }
}

export const writes = auditedWritesOf({ createNewBucket })
