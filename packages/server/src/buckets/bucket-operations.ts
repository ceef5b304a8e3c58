import { createHash, randomBytes } from 'node:crypto'
import { deriveToken } from '../access/derived-tokens.ts'
import { expiryFault, type TokenRequest } from '../access/new-tokens.ts'
import { ensureSigningKey } from '../access/signed-links.ts'
import { type CreatedToken, createdToken, generateToken, grantToken } from '../access/token-operations.ts'
import { bucketMembers } from '../core/bucket-members.ts'
import type { BucketListQuery } from '../core/bucket-queries.ts'
import { settingsChanged, settingsTag } from '../core/bucket-settings.ts'
import { createCursors } from '../core/cursors.ts'
import { Fault } from '../core/faults.ts'
import { isBucketName } from '../core/names.ts'
import type { Actor, ServiceScope } from '../core/token-rules.ts'
import type * as schemas from '../http/openapi/bucket-schemas.ts'
import type { ValueOf } from '../http/openapi/schemas.ts'
import { hasExpired } from '../storage/catalog/bucket-creation.ts'
import type { BucketPlace, ListedBucket } from '../storage/catalog/bucket-list.ts'
import type { Catalog } from '../storage/catalog/catalog.ts'
import type { BucketSettings, TokenId } from '../storage/catalog/records.ts'
import type { BucketDeleter } from './bucket-deletion.ts'

type ManagedBucket = ValueOf<typeof schemas.ManagedBucket>

/** A bucket as in responses, and its entity tag, which identifies its settings. */
export interface DescribedBucket {
  readonly bucket: ManagedBucket
  readonly etag: string
}

/** A bucket as in responses to tokens of the service (docs/interface.md BK1). */
const managedBucket = (bucket: ListedBucket): ManagedBucket => ({
  ...bucketMembers(bucket),
  created_at: new Date(bucket.createdAt).toISOString(),
})

const describe = (bucket: ListedBucket): DescribedBucket => ({
  bucket: managedBucket(bucket),
  etag: etagOf(bucket),
})

const etagOf = (bucket: ListedBucket): string => `"${settingsTag(bucket.id, bucket)}"`

export const bucketUnknown = (name: string): Fault =>
  new Fault('bucket-unknown', `There is no bucket ${JSON.stringify(name.slice(0, 100))}.`)

/** The name of a request, which a bucket can have (docs/interface.md BK1). The catalog is not asked for others: PostgreSQL has no text with NUL. */
export function requireBucketName(name: string): string {
  if (!isBucketName(name)) throw bucketUnknown(name)
  return name
}

/** A part of a list of buckets, with what its cursors need. */
interface BucketPage {
  readonly totals: ValueOf<typeof schemas.BucketList>['totals']
  readonly buckets: readonly ManagedBucket[]
  /** The cursor after the bucket with this index. */
  readonly cursorAfter: (index: number) => string | null
  /** Whether buckets follow the last one. */
  readonly hasMore: boolean
}

/** Lists buckets (docs/interface.md BK2). The returned function throws Fault `cursor-malformed`. */
export function listBucketsOperation({
  catalog,
}: {
  readonly catalog: Pick<Catalog, 'listBucketsAfter' | 'epoch'>
}) {
  const cursors = createCursors(catalog.epoch)
  return async function listBuckets({ limit, after, order, prefix }: BucketListQuery): Promise<BucketPage> {
    const list = ['buckets', order, prefix]
    const from = after === null ? null : placeOf(cursors.parse(list, after))
    // One more than requested shows whether buckets follow.
    const { totals, rows } = await catalog.listBucketsAfter({ order, prefix }, from, limit + 1)
    return {
      totals,
      buckets: rows.slice(0, limit).map(({ bucket }) => managedBucket(bucket)),
      cursorAfter(index) {
        const row = rows[index]
        return row === undefined
          ? null
          : cursors.format(list, JSON.stringify([row.place.value, row.place.id]))
      },
      hasMore: rows.length > limit,
    }
  }
}

/** Throws Fault `cursor-malformed`. */
function placeOf(found: ReturnType<ReturnType<typeof createCursors>['parse']>): BucketPlace {
  if (found?.isOwn !== true) throw cursorMalformed()
  const place: unknown = JSON.parse(found.place)
  const [value, id]: readonly unknown[] = Array.isArray(place) ? place : []
  if ((typeof value !== 'string' && typeof value !== 'number') || typeof id !== 'number')
    throw cursorMalformed()
  return { value, id }
}

function cursorMalformed(): Fault {
  const detail = 'after accepts the next_cursor of a response with the same order and name, unchanged.'
  return new Fault('cursor-malformed', detail, { parameters: [{ parameter: 'after', detail }] })
}

/** The bucket with this name (docs/interface.md BK6). Throws Fault `bucket-unknown`. */
export async function findBucket(
  catalog: Pick<Catalog, 'findListedBucket'>,
  name: string,
): Promise<DescribedBucket> {
  const bucket = await catalog.findListedBucket(name)
  if (bucket === null) throw bucketUnknown(name)
  return describe(bucket)
}

interface BucketRequest {
  readonly name: string
  readonly settings: Partial<BucketSettings>
  /** The first token of the bucket; null for none. */
  readonly token: TokenRequest | null
  /** The token of the request, which must be valid until the first token of the bucket is stored. */
  readonly grantor?: TokenId
}

/** The idempotency key of a request, and what it depends on. */
interface RequestKey {
  readonly tokenId: TokenId
  readonly key: string
  /** The token of the request. */
  readonly requestToken: string
  /** The body of the request, in a form that is the same for a repetition. */
  readonly content: string
}

const sha256 = (text: string): Uint8Array => createHash('sha256').update(text).digest()

/**
 * Creates a bucket, with its first token (docs/interface.md BK4, BK5). Throws Fault `bucket-exists`, `idempotency-key-reused`, `json-malformed` if the
 * token of a new bucket has expired, and `bucket-unknown` if the bucket is deleted before it is read for the response.
 */
export async function createBucket(
  catalog: Pick<
    Catalog,
    'createNewBucket' | 'findListedBucket' | 'findToken' | 'signingKeys' | 'addSigningKey'
  >,
  { name, settings, token, ...granting }: BucketRequest,
  key: RequestKey | null,
  now: number,
  by: Actor,
): Promise<DescribedBucket & { readonly token: CreatedToken | null }> {
  if (settings.isPrivate) await ensureSigningKey(catalog, now)
  const nonce = randomBytes(32)
  const secretOf = (nonce: Uint8Array) =>
    key === null ? generateToken(now) : deriveToken(key.requestToken, nonce, now)
  const secret = secretOf(nonce)
  const created = await catalog.createNewBucket(
    {
      ...{ name, settings, createdAt: now, ...granting },
      token: token && { ...token, ...secret.row },
      creation: key && {
        key: sha256(JSON.stringify([key.tokenId, key.key])),
        fingerprint: sha256(key.content),
        nonce,
      },
    },
    by,
  )
  if (created === null) throw hasExpired(token, now) ? firstTokenExpired() : bucketExists(name)
  // A repetition has the token of the first request with the key.
  const granted = created.nonce === null ? secret : secretOf(created.nonce)
  return {
    ...(await findBucket(catalog, name)),
    token: token && (await createdToken(catalog, granted.row.id, granted.token, token.wantsKeys)),
  }
}

const bucketExists = (name: string): Fault =>
  new Fault('bucket-exists', `There is a bucket ${JSON.stringify(name)} already.`)

function firstTokenExpired(): Fault {
  const fault = { ...expiryFault, parameter: 'token.expires_at' }
  return new Fault('json-malformed', `The first token of the bucket has expired. ${fault.detail}`, {
    parameters: [fault],
  })
}

/** Whether a request is meant for a bucket with this entity tag; null for every bucket. */
type TagCondition = ((etag: string) => boolean) | null

/** The settingsTag of the bucket, which the catalog compares again when it writes; null if the request is meant for every one. */
async function expectedTag(
  catalog: Pick<Catalog, 'findListedBucket'>,
  name: string,
  isExpected: TagCondition,
): Promise<string | null> {
  if (isExpected === null) return null
  const bucket = await catalog.findListedBucket(name)
  if (bucket === null) throw bucketUnknown(name)
  if (!isExpected(etagOf(bucket))) throw settingsChanged()
  return settingsTag(bucket.id, bucket)
}

/**
 * Changes settings of a bucket (docs/interface.md BK7), if `isExpected` accepts its entity tag. Throws Fault `bucket-unknown` and
 * `precondition-failed`.
 */
export async function setBucket(
  catalog: Pick<Catalog, 'setBucket' | 'findListedBucket' | 'signingKeys' | 'addSigningKey'>,
  name: string,
  settings: Partial<BucketSettings>,
  isExpected: TagCondition,
  now: number,
  by: Actor,
): Promise<DescribedBucket> {
  const expected = await expectedTag(catalog, name, isExpected)
  if (settings.isPrivate) await ensureSigningKey(catalog, now)
  if (!(await catalog.setBucket(name, settings, by, expected))) throw bucketUnknown(name)
  return await findBucket(catalog, name)
}

/** Deletes a bucket (docs/interface.md BK10). Throws Fault `bucket-unknown`, `precondition-failed` and `bucket-not-empty`. */
export async function deleteBucket(
  {
    catalog,
    deleter,
  }: { catalog: Pick<Catalog, 'findListedBucket'>; deleter: Pick<BucketDeleter, 'delete'> },
  name: string,
  deletesItems: boolean,
  isExpected: TagCondition,
  by: Actor,
): Promise<void> {
  const expected = await expectedTag(catalog, name, isExpected)
  const deleted = await deleter.delete(name, deletesItems, by, expected)
  if (deleted === null) throw bucketUnknown(name)
  if (deleted === 'has-items')
    throw new Fault('bucket-not-empty', 'The bucket has items. Send items=delete to delete them with it.')
}

/** Creates a token of a bucket (docs/interface.md BK12). Throws Fault `bucket-unknown`, and those of grantToken of access/token-operations.ts. */
export async function createBucketToken(
  catalog: Pick<Catalog, 'findListedBucket' | 'grantToken' | 'findToken' | 'signingKeys' | 'addSigningKey'>,
  caller: { readonly tokenId: TokenId; readonly scopes: ReadonlySet<ServiceScope> },
  name: string,
  request: TokenRequest,
  now: number,
  by: Actor,
): Promise<CreatedToken> {
  const bucket = await catalog.findListedBucket(name)
  if (bucket === null) throw bucketUnknown(name)
  return await grantToken(catalog, { ...caller, bucketId: bucket.id }, request, now, by)
}
