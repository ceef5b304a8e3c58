import { createHash } from 'node:crypto'
import { type ChecksumAlgorithm, isChecksumAlgorithm, newChecksum } from '../core/checksums.ts'
import { Fault } from '../core/faults.ts'
import type { ItemId } from '../core/ids.ts'
import { isObject, parseJson } from '../core/json.ts'
import { isReservedKey, maxKeyLength } from '../core/object-key-rules.ts'
import type { Amount } from '../core/quotas.ts'
import { requireUnlimited } from '../core/token-rules.ts'
import { bytesDamaged, type OpenBytes } from '../downloads/bytes-cache.ts'
import type { Catalog } from '../storage/catalog/catalog.ts'
import {
  etagOfItem,
  type KeyChange,
  type KeyDetails,
  type KeyedItem,
  type KeyRefusal,
} from '../storage/catalog/objects/object-keys.ts'
import type { ListedKey } from '../storage/catalog/objects/object-lists.ts'
import type { AddedItem, BucketId, ItemDetails, NewItem } from '../storage/catalog/records.ts'
import type { StoreOperations } from '../uploads/commit.ts'
import { defaultExpiry } from '../uploads/new-items.ts'
import { ObjectFault } from './object-faults.ts'
import type { ObjectCaller, ObjectChecksum, ObjectHeaders, ObjectPart } from './object-types.ts'

/** An item with its key. */
export interface StoredObject<Found extends ItemDetails = ItemDetails> {
  readonly key: string
  readonly item: Found
  /** Without quotes. */
  readonly etag: string
  /** The parts of which it was made; null if it was not uploaded in parts. */
  readonly parts: readonly ObjectPart[] | null
  readonly isPublic: boolean
  readonly headers: ObjectHeaders
  /** Milliseconds since 1970. */
  readonly lastModified: number
}

/** What a key must have: an etag, or `*` for any. They are evaluated in the transaction of the change. */
export interface ObjectConditions {
  readonly ifMatch?: string
  readonly ifNoneMatch?: string
}

/** What is known of an object when its last byte has arrived. */
interface FinishedObject {
  readonly etag: string
  readonly headers: ObjectHeaders
}

interface NewObject {
  readonly body: Uint8Array | AsyncIterable<Uint8Array>
  /** Bytes; null if unknown. */
  readonly size: number | null
  readonly isPublic: boolean
  readonly conditions: ObjectConditions
  /** Of the picture that is copied, as core/focus.ts stores it. */
  readonly focus?: number | null
  readonly declaredType: string | null
  /** Called after the last byte and before anything is committed; throws if the bytes are not those that were announced. */
  readonly finish: () => FinishedObject
  /** As `finish`, with the SHA-256 of the bytes. */
  readonly check?: (sha256: Uint8Array) => void
}

interface ObjectSelection {
  readonly prefix: string
  readonly delimiter: string | null
  readonly after: string | null
  readonly limit: number
  /** Whether items without a key are left out. */
  readonly isKeyedOnly: boolean
}

/** What a list has of an object. */
export interface ListedObject extends Pick<StoredObject, 'key' | 'etag' | 'lastModified'> {
  /** Bytes. */
  readonly size: number
  readonly checksum: Pick<ObjectChecksum, 'algorithm' | 'type'> | null
}

export interface ObjectList {
  readonly objects: readonly ListedObject[]
  /** What the keys of several objects begin with. Both are in the order of the bytes. */
  readonly prefixes: readonly string[]
  readonly isTruncated: boolean
  /** After which the list goes on; null at its end. */
  readonly next: string | null
}

export interface CopyOptions {
  /** New headers instead of those of the source; null to keep these. */
  readonly headers: ObjectHeaders | null
  /** Of a new checksum; null to keep that of the source. */
  readonly algorithm: ChecksumAlgorithm | null
  readonly isPublic: boolean
  readonly conditions: ObjectConditions
}

export interface ObjectParts {
  readonly catalog: Pick<
    Catalog,
    'bucket' | 'item' | 'findKey' | 'listKeys' | 'putKey' | 'removeKey' | 'removeKeys' | 'editKey'
  >
  readonly storeFile: StoreOperations['storeFile']
  readonly openBytes: OpenBytes
  /** Deletes the bytes of removed items in the background. */
  readonly deleteLater: (ids: readonly ItemId[]) => void
  readonly now: () => number
}

export type Objects = ReturnType<typeof objectOperations>

/** Objects: items by their keys (docs/interface.md OK1). */
export function objectOperations(parts: ObjectParts) {
  return {
    putObject: (...input: Rest<typeof putObject>) => putObject(parts, ...input),
    findObject: (...input: Rest<typeof findObject>) => findObject(parts, ...input),
    listObjects: (...input: Rest<typeof listObjects>) => listObjects(parts, ...input),
    deleteObject: (...input: Rest<typeof deleteObject>) => deleteObject(parts, ...input),
    deleteObjects: (...input: Rest<typeof deleteObjects>) => deleteObjects(parts, ...input),
    copyObject: (...input: Rest<typeof copyObject>) => copyObject(parts, ...input),
    setPublic: (...input: Rest<typeof setPublic>) => setPublic(parts, ...input),
  }
}

/** The parameters after the first one. */
export type Rest<Function> = Function extends (parts: never, ...input: infer Input) => unknown ? Input : never

/** Bytes of the JSON of the headers of an object without its checksum. */
const maxHeaders = 4_096

/** Throws ObjectFault `key-malformed`, `key-too-long` and `key-reserved` for a key that no object can get. */
export function requireNewKey(key: string): void {
  if (key === '' || !key.isWellFormed())
    throw new ObjectFault('key-malformed', 'A key has at least one character, and is text in UTF-8.')
  if (Buffer.byteLength(key) > maxKeyLength)
    throw new ObjectFault('key-too-long', `A key has at most ${maxKeyLength} bytes of UTF-8.`)
  if (isReservedKey(key))
    throw new ObjectFault(
      'key-reserved',
      'Below _items/ are the items without a key. Store the object with another key.',
    )
}

/** Keys that no object can have name nothing. */
const canBeKey = (key: string): boolean =>
  key !== '' && key.isWellFormed() && Buffer.byteLength(key) <= maxKeyLength

/** The headers as they are stored. Throws ObjectFault `headers-too-large`, whatever checksum they get in the end. */
export function storedHeaders({ checksum, ...sent }: ObjectHeaders): string {
  if (Buffer.byteLength(JSON.stringify(sent)) > maxHeaders)
    throw new ObjectFault(
      'headers-too-large',
      `The headers and the metadata of an object may have ${maxHeaders} bytes.`,
    )
  return JSON.stringify({ ...sent, checksum })
}

/** Reads headers of `storedHeaders`. */
export function parseHeaders(json: string): ObjectHeaders {
  const headers = parseJson(json)
  if (!isHeaders(headers)) throw new TypeError('the catalog holds headers of an object that are not valid')
  return headers
}

// storedHeaders has written the other members.
const isHeaders = (value: unknown): value is ObjectHeaders => isObject(value) && isObject(value['metadata'])

/** Reads parts as `completeMultipart` writes them. */
export function parseParts(json: string): readonly ObjectPart[] {
  const parts = parseJson(json)
  if (!Array.isArray(parts) || !parts.every(isPart))
    throw new TypeError('the catalog holds parts of an object that are not valid')
  return parts
}

const isPart = (value: unknown): value is ObjectPart =>
  isObject(value) &&
  typeof value['size'] === 'number' &&
  (value['checksum'] === undefined || typeof value['checksum'] === 'string')

const storedObjectOf = <Found extends ItemDetails>({
  key,
  item,
  details,
}: KeyedItem<Found>): StoredObject<Found> =>
  details === null ? unkeyedObject(key, item) : { key, item, ...objectDetails(details) }

const objectDetails = ({ etag, parts, isPublic, headers, modifiedAt }: KeyDetails) => ({
  etag,
  parts: parts === null ? null : parseParts(parts),
  isPublic,
  headers: parseHeaders(headers),
  lastModified: modifiedAt,
})

/** An item that was not stored with a key. */
const unkeyedObject = <Found extends ItemDetails>(key: string, item: Found): StoredObject<Found> => ({
  ...{ key, item, etag: etagOfItem(item), parts: null, isPublic: false },
  headers: { contentType: item.contentType, metadata: {} },
  lastModified: item.createdAt,
})

/** The fault of a change that was not made. */
export function refusal(refused: KeyRefusal): Error {
  if (refused === 'key-unknown') return new ObjectFault('key-unknown', 'There is no object with this key.')
  if (refused === 'precondition-failed')
    return new ObjectFault(
      'precondition-failed',
      'A condition of the request does not hold for the object with this key.',
    )
  return new Fault('scope-missing', 'The token may not replace an object, because it lacks media:delete.', {
    parameters: [{ parameter: 'scope', detail: 'media:delete', missing: ['media:delete'] }],
  })
}

/** Deletes the blobs of removed items in the background. Returns the number of these items. Throws the fault of a change that was not made. */
function settle(deleteLater: ObjectParts['deleteLater'], change: KeyChange): number {
  if (change.refused !== null) throw refusal(change.refused)
  deleteLater(change.tombstones)
  return change.ids.length
}

/**
 * Stores an object in place of the one that has its key (docs/interface.md OK2). Throws what storing an item throws, and ObjectFault `key-malformed`,
 * `key-too-long`, `key-reserved`, `headers-too-large`, `key-unknown` and `precondition-failed`, Fault `scope-missing` if the token may not replace an object,
 * and what `finish` throws; then nothing is changed.
 */
async function putObject(
  parts: ObjectParts,
  caller: ObjectCaller,
  key: string,
  object: NewObject,
): Promise<StoredObject> {
  requireNewKey(key)
  const { catalog, now } = parts
  const { size, declaredType, focus = null, check } = object
  const put: Put = { parts, caller, key, object, finished: null }
  const { change, stored } = await parts.storeFile(
    caller,
    { sent: { filename: key, declaredType, focus, isKey: true }, body: bodyOf(put) },
    {
      by: caller.actor,
      expiresAt: defaultExpiry(caller.itemDays, now()),
      atMost: size,
      ...(check && { check }),
      readFreed: () => freedBy(catalog, caller.bucketId, key),
      add: (item) => addObject(put, item),
    },
  )
  settle(parts.deleteLater, change)
  return stored
}

/** An object that is being stored. */
interface Put {
  readonly parts: Pick<ObjectParts, 'catalog'>
  readonly caller: ObjectCaller
  readonly key: string
  readonly object: Pick<NewObject, 'body' | 'isPublic' | 'conditions' | 'finish'>
  /** Null until the last byte has arrived. The headers are those of `storedHeaders`. */
  finished: { readonly etag: string; readonly headers: string } | null
}

function bodyOf(put: Put): NewObject['body'] {
  const { body } = put.object
  if (!(body instanceof Uint8Array)) return finishing(put, body)
  finish(put)
  return body
}

async function* finishing(put: Put, body: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  yield* body
  finish(put)
}

function finish(put: Put): void {
  const { etag, headers } = put.object.finish()
  put.finished = { etag, headers: storedHeaders(headers) }
}

/** Binds the key to the item, unless a condition does not hold. */
async function addObject(
  { parts: { catalog }, caller, key, object: { isPublic, conditions }, finished }: Put,
  item: AddedItem,
) {
  if (finished === null) throw new TypeError('a body has not ended')
  const details = { ...finished, parts: null, isPublic, modifiedAt: item.createdAt }
  // Before the catalog takes over the bytes.
  const stored = storedObjectOf({ key, item: detailsOf(item), details })
  const change = await catalog.putKey(
    caller.bucketId,
    { key, item, ...details },
    { ...conditions, mayReplace: caller.scopes.has('media:delete') },
    caller.limits?.id ?? null,
    caller.actor,
  )
  return { isAdded: change.refused === null, result: { change, stored } }
}

/** What the quota has more once the item with this key has left the bucket. The bytes of the trash count. */
async function freedBy(
  catalog: Pick<Catalog, 'findKey' | 'bucket'>,
  bucketId: BucketId,
  key: string,
): Promise<Amount> {
  const [found, bucket] = await Promise.all([catalog.findKey(bucketId, key), catalog.bucket(bucketId)])
  if (found === null || bucket === null) return { items: 0, bytes: 0 }
  return { items: 1, bytes: bucket.trashDays === 0 ? found.item.size : 0 }
}

/** The details of a new item. The bytes of an added one are the catalog's. */
export function detailsOf(item: NewItem | AddedItem): ItemDetails {
  const { bytes: _bytes, by: _by, ...described } = { bytes: null, by: null, ...item }
  return { ...described, ...{ thumbhash: null, duration: null, altText: null, caption: null } }
}

/** The object with this key; null if there is none. `key` may be any text. */
async function findObject({ catalog }: Pick<ObjectParts, 'catalog'>, bucketId: BucketId, key: string) {
  const found = canBeKey(key) ? await catalog.findKey(bucketId, key) : null
  return found === null ? null : storedObjectOf(found)
}

/** Objects of the bucket in the order of the bytes of their keys (docs/interface.md OK6). */
async function listObjects(
  { catalog, now }: Pick<ObjectParts, 'catalog' | 'now'>,
  bucketId: BucketId,
  { limit, ...selection }: ObjectSelection,
): Promise<ObjectList> {
  // As S3, whose empty page is not truncated.
  if (limit === 0) return { objects: [], prefixes: [], isTruncated: false, next: null }
  const found = await catalog.listKeys(bucketId, { ...selection, limit: limit + 1 }, now())
  const entries = found.slice(0, limit)
  const last = entries.at(-1)
  const isTruncated = found.length > limit && last !== undefined
  return {
    objects: entries.flatMap((entry) => ('key' in entry ? listedObjectOf(entry) : [])),
    prefixes: entries.flatMap((entry) => ('prefix' in entry ? entry.prefix : [])),
    isTruncated,
    next: isTruncated ? ('key' in last ? last.key : last.prefix) : null,
  }
}

const listedObjectOf = ({ key, size, etag, headers, modifiedAt }: ListedKey): ListedObject => ({
  ...{ key, size, etag, lastModified: modifiedAt },
  checksum: headers === null ? null : listedChecksum(headers),
})

/** What precedes the algorithm of a checksum, which is the last member. No text of a client has it, because JSON escapes its quotes. */
const checksumStart = '"checksum":{"algorithm":"'

/** What a list has of the checksum in headers of `storedHeaders`: found and not parsed, for each of 1,000 objects (`npm run bench -- lists`). */
export function listedChecksum(headers: string): ListedObject['checksum'] {
  const before = headers.indexOf(checksumStart)
  if (before === -1) return null
  const start = before + checksumStart.length
  const algorithm = headers.slice(start, headers.indexOf('"', start))
  if (!isChecksumAlgorithm(algorithm)) return null
  return { algorithm, type: headers.includes('"type":"COMPOSITE"', start) ? 'COMPOSITE' : 'FULL_OBJECT' }
}

/**
 * Deletes an object, or moves its item to the trash of the bucket. Does nothing if there is none, unless a condition requires one. Returns the number of
 * removed items. Throws ObjectFault `precondition-failed`, and `key-unknown` with `ifMatch`.
 */
async function deleteObject(
  { catalog, deleteLater }: Pick<ObjectParts, 'catalog' | 'deleteLater'>,
  { bucketId, actor }: ObjectCaller,
  key: string,
  conditions: ObjectConditions = {},
): Promise<number> {
  if (!canBeKey(key)) return 0
  const change = await catalog.removeKey(bucketId, key, conditions, actor)
  if (change.refused === 'key-unknown' && conditions.ifMatch === undefined) return 0
  return settle(deleteLater, change)
}

/** Deletes the objects with these keys in one transaction. Returns the number of removed items. */
async function deleteObjects(
  { catalog, deleteLater }: Pick<ObjectParts, 'catalog' | 'deleteLater'>,
  { bucketId, actor }: ObjectCaller,
  keys: readonly string[],
): Promise<number> {
  const { ids, tombstones } = await catalog.removeKeys(bucketId, keys.filter(canBeKey), actor)
  deleteLater(tombstones)
  return ids.length
}

/**
 * Copies an object of this or another bucket, as putObject. A copy of an object to its own key changes only what the key has besides its item. Throws
 * ObjectFault `key-unknown` if the source was deleted.
 */
async function copyObject(
  parts: ObjectParts,
  caller: ObjectCaller,
  source: { readonly bucketId: BucketId; readonly object: StoredObject },
  key: string,
  { headers, algorithm, isPublic, conditions }: CopyOptions,
): Promise<StoredObject> {
  requireNewKey(key)
  const { catalog, openBytes, now } = parts
  const { object } = source
  if (source.bucketId === caller.bucketId && key === object.key) {
    requireUnlimited(caller)
    const kept =
      headers === null
        ? object.headers
        : { ...headers, ...(object.headers.checksum && { checksum: object.headers.checksum }) }
    const edit = { isPublic, headers: storedHeaders(kept), modifiedAt: now() }
    settle(
      parts.deleteLater,
      await catalog.editKey(
        caller.bucketId,
        key,
        edit,
        { ...conditions, ifItem: object.item.id },
        caller.actor,
      ),
    )
    return { ...object, isPublic, headers: kept, lastModified: edit.modifiedAt }
  }
  const item = await catalog.item(object.item.id)
  if (item === null || item.bucketId !== source.bucketId) throw refusal('key-unknown')
  const blob = await openBytes(item)
  const md5 = createHash('md5')
  const checksum = algorithm && newChecksum(algorithm)
  const copied = copiedHeaders(object, headers)
  try {
    return await putObject(parts, caller, key, {
      body: hashed(item.size === 0 ? [] : blob.stream(0, item.size - 1), [md5, checksum]),
      size: item.size,
      ...{ isPublic, conditions, declaredType: copied.contentType ?? item.contentType },
      focus: item.focus ?? null,
      check: (sha256) => requireUndamaged(item, sha256),
      finish: () => ({
        etag: md5.digest('hex'),
        headers:
          checksum === null || algorithm === null
            ? copied
            : {
                ...copied,
                checksum: { algorithm, value: checksum.digest().toString('base64'), type: 'FULL_OBJECT' },
              },
      }),
    })
  } finally {
    await blob.close()
  }
}

/** Throws Fault `bytes-missing` unless the bytes of an item that were read have this SHA-256. */
export function requireUndamaged(item: Pick<ItemDetails, 'sha256'>, sha256: Uint8Array): void {
  if (!Buffer.from(item.sha256).equals(sha256)) throw bytesDamaged()
}

/** The headers of a copy: new ones, unless they are null, with the checksum of the bytes. A copy has no parts, and so no checksum of them. */
function copiedHeaders({ headers: earlier }: StoredObject, headers: ObjectHeaders | null): ObjectHeaders {
  const { checksum, ...others } = earlier
  return checksum?.type === 'FULL_OBJECT' ? { ...(headers ?? others), checksum } : (headers ?? others)
}

/** The bytes of a source, which the hashes receive too. */
export async function* hashed(
  source: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
  hashes: readonly ({ update(bytes: Uint8Array): unknown } | null)[],
): AsyncGenerator<Uint8Array> {
  for await (const chunk of source) {
    for (const hash of hashes) hash?.update(chunk)
    yield chunk
  }
}

/** Throws ObjectFault `key-unknown`, also for an item without a key of its own, `key-reserved` if such an item would be public, and Fault `scope-missing`. */
async function setPublic(
  { catalog, deleteLater }: Pick<ObjectParts, 'catalog' | 'deleteLater'>,
  caller: ObjectCaller,
  key: string,
  isPublic: boolean,
): Promise<void> {
  requireUnlimited(caller)
  if (!canBeKey(key)) throw refusal('key-unknown')
  if (isPublic) requireNewKey(key)
  settle(deleteLater, await catalog.editKey(caller.bucketId, key, { isPublic }, {}, caller.actor))
}
