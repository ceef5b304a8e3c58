import { createHash } from 'node:crypto'
import { newChecksum } from '../core/checksums.ts'
import { fileTooLarge } from '../core/faults.ts'
import { createItemIds, type ItemId, newMultipartId, type UploadId } from '../core/ids.ts'
import { maxFileSizeOf } from '../core/quotas.ts'
import type { OpenBytes } from '../downloads/bytes-cache.ts'
import type { BlobStore } from '../storage/blobs/blobs.ts'
import type { Catalog } from '../storage/catalog/catalog.ts'
import type {
  ListedMultipart,
  MultipartPlace,
  MultipartSelection,
  StoredPart,
} from '../storage/catalog/objects/multipart-uploads.ts'
import type { BucketId } from '../storage/catalog/records.ts'
import { commitBlobs } from '../uploads/commit.ts'
import { requireKeptType } from '../uploads/new-items.ts'
import type { Reserve } from '../uploads/reservations.ts'
import type { FreeSpace } from '../uploads/space.ts'
import { type CompletionParts, completeMultipart } from './multipart-completion.ts'
import { ObjectFault } from './object-faults.ts'
import {
  hashed,
  type Rest,
  requireNewKey,
  requireUndamaged,
  type StoredObject,
  storedHeaders,
} from './object-operations.ts'
import type { ObjectCaller, ObjectHeaders } from './object-types.ts'
import {
  findMultipart,
  type MultipartChecksum,
  type OpenMultipart,
  uploadUnknown,
} from './open-multiparts.ts'

/** Bytes. */
const maxPartSize = 5 * 1024 ** 3
const maxPartNumber = 10_000

/** The bytes of a part. */
export interface PartSource {
  readonly body: AsyncIterable<Uint8Array>
  /** Bytes; null if unknown. */
  readonly size: number | null
  /** Called with the SHA-256 of the bytes before anything is committed; throws if they are not those that were announced. */
  readonly finish: (sha256: Uint8Array) => { readonly etag: string; readonly checksum: string | null }
}

export interface MultipartParts extends CompletionParts {
  readonly catalog: CompletionParts['catalog'] &
    Pick<Catalog, 'item' | 'createMultipart' | 'putPart' | 'listMultiparts' | 'removeMultipart'>
  readonly blobs: Pick<BlobStore, 'open' | 'receive' | 'commit' | 'discard'>
  readonly openBytes: OpenBytes
  readonly reserve: Reserve
  readonly space: Pick<FreeSpace, 'claim'>
  /** Milliseconds. */
  readonly expiry: number
}

export type MultipartOperations = ReturnType<typeof multipartOperations>

/** Uploads of objects in parts (docs/interface.md MU1). */
export function multipartOperations(parts: MultipartParts) {
  const ids = { ...parts, newId: createItemIds(parts.now) }
  const completing = { ...parts, running: new Map() }
  return {
    create: (...input: Rest<typeof createMultipart>) => createMultipart(parts, ...input),
    find: (...input: Rest<typeof findMultipart>) => findMultipart(parts, ...input),
    putPart: (...input: Rest<typeof putPart>) => putPart(ids, ...input),
    listParts: (...input: Rest<typeof listParts>) => listParts(parts, ...input),
    list: (...input: Rest<typeof listMultiparts>) => listMultiparts(parts, ...input),
    abort: (...input: Rest<typeof abortMultipart>) => abortMultipart(parts, ...input),
    complete: (...input: Rest<typeof completeMultipart>) => completeMultipart(completing, ...input),
    copyPart: (...input: Rest<typeof copyPart>) => copyPart(ids, ...input),
  }
}

/** Creates an upload. Throws Fault `quota-exceeded`, `token-limit-exceeded`, `storage-full` and `type-refused`. */
async function createMultipart(
  { catalog, space, expiry, now }: MultipartParts,
  caller: ObjectCaller,
  key: string,
  object: {
    readonly headers: ObjectHeaders
    readonly isPublic: boolean
    readonly checksum: MultipartChecksum | null
  },
): Promise<UploadId> {
  const { headers, isPublic, checksum } = object
  requireNewKey(key)
  requireKeptType(caller, { filename: key, declaredType: headers.contentType ?? null, isKey: true })
  space.claim(0).release()
  const createdAt = now()
  const id = newMultipartId(createdAt)
  await catalog.createMultipart(caller.bucketId, {
    ...{ id, key, isPublic, createdAt },
    headers: storedHeaders(headers),
    checksum: checksum && `${checksum.algorithm} ${checksum.type}`,
    expiresAt: createdAt + expiry,
    tokenId: caller.tokenId,
    limitedBy: caller.limits?.id ?? null,
  })
  return id
}

function requirePartNumber(number: number): void {
  if (!Number.isSafeInteger(number) || number < 1 || number > maxPartNumber)
    throw new ObjectFault('part-number-invalid', `A part has a number from 1 to ${maxPartNumber}.`)
}

/**
 * Stores a part durably, and replaces the one with its number (docs/interface.md MU1). Throws Fault `file-too-large`, `quota-exceeded`, `token-limit-exceeded`,
 * `storage-full` and `upload-unknown`, ObjectFault `part-number-invalid`, and what `finish` throws; then nothing is stored.
 */
async function putPart(
  parts: MultipartParts & { readonly newId: () => ItemId },
  caller: ObjectCaller,
  { id }: Pick<OpenMultipart, 'id'>,
  number: number,
  { body, size, finish }: PartSource,
): Promise<StoredPart> {
  const { catalog, blobs, reserve, space, maxFileSize, expiry, now, newId, deleteLater } = parts
  const { bucketId } = caller
  requirePartNumber(number)
  const limit = Math.min(maxPartSize, maxFileSizeOf(caller, maxFileSize))
  if (size !== null && size > limit) throw fileTooLarge(limit)
  // The space and the quota are taken before bytes are read, and given back in any case.
  const claim = space.claim(size ?? 0)
  const reservation = reserve(caller)
  try {
    const [earlier] = await catalog.listParts(id, number - 1, 1)
    const replacedBytes = earlier?.number === number ? earlier.size : 0
    const hold = (bytes: number) => reservation.hold({ items: 0, bytes: Math.max(0, bytes - replacedBytes) })
    await hold(size ?? 0)
    const blob = await blobs.receive(newId(), counted(body, claim.arrived.bind(claim), hold), limit)
    const ended = await attempt(
      () => finish(blob.sha256),
      () => blobs.discard([blob]),
    )
    const part: StoredPart = { ...ended, number, itemId: blob.id, size: blob.size, storedAt: now() }
    return await commitBlobs(blobs, [blob], async () => {
      reservation.beginCommit()
      const replaced = await catalog.putPart(bucketId, id, part, now() + expiry)
      if (replaced === null) throw uploadUnknown()
      deleteLater(replaced)
      return part
    })
  } finally {
    reservation.release()
    claim.release()
  }
}

async function attempt<T>(work: () => T, onFailure: () => Promise<void>): Promise<T> {
  try {
    return work()
  } catch (error) {
    await onFailure()
    throw error
  }
}

/** The source, whose bytes are claimed and reserved as they arrive. */
async function* counted(
  source: AsyncIterable<Uint8Array>,
  claim: (bytes: number) => void,
  hold: (bytes: number) => Promise<void>,
): AsyncGenerator<Uint8Array> {
  let size = 0
  for await (const chunk of source) {
    claim(chunk.byteLength)
    size += chunk.byteLength
    await hold(size)
    yield chunk
  }
}

/** Parts of an unfinished upload, in the order of their numbers. Throws Fault `upload-unknown`. */
async function listParts(
  parts: Pick<MultipartParts, 'catalog' | 'now'>,
  caller: ObjectCaller,
  key: string,
  id: string,
  { after, limit }: { readonly after: number; readonly limit: number },
): Promise<{
  readonly upload: OpenMultipart
  readonly parts: readonly StoredPart[]
  readonly isTruncated: boolean
}> {
  const upload = await findMultipart(parts, caller, key, id)
  const found = await parts.catalog.listParts(upload.id, after, limit + 1)
  return { upload, parts: found.slice(0, limit), isTruncated: limit > 0 && found.length > limit }
}

/** A part of the list of unfinished uploads. */
export interface ListedMultiparts {
  readonly uploads: readonly ListedMultipart[]
  /** What the keys of other uploads begin with. Both are in the order of the bytes of their keys. */
  readonly prefixes: readonly string[]
  readonly isTruncated: boolean
  /** After which the list goes on; null at its end. */
  readonly next: MultipartPlace | null
}

/** The unfinished uploads that the caller can continue (docs/interface.md T10). */
async function listMultiparts(
  { catalog, now }: Pick<MultipartParts, 'catalog' | 'now'>,
  { bucketId, limits }: Pick<ObjectCaller, 'bucketId' | 'limits'>,
  { limit, ...selection }: Omit<MultipartSelection, 'limitedBy'>,
): Promise<ListedMultiparts> {
  const limitedBy = limits?.id ?? null
  const found = await catalog.listMultiparts(bucketId, { ...selection, limitedBy, limit: limit + 1 }, now())
  const entries = found.slice(0, limit)
  const last = entries.at(-1)
  const isTruncated = found.length > limit && last !== undefined
  return {
    uploads: entries.flatMap((entry) => ('upload' in entry ? entry.upload : [])),
    prefixes: entries.flatMap((entry) => ('prefix' in entry ? entry.prefix : [])),
    isTruncated,
    next: isTruncated ? placeOf(last) : null,
  }
}

const placeOf = (entry: { upload: ListedMultipart } | { prefix: string }): MultipartPlace =>
  'upload' in entry
    ? { key: entry.upload.key, id: entry.upload.id, isPrefix: false }
    : { key: entry.prefix, id: null, isPrefix: true }

/** Removes an unfinished upload with its parts (docs/interface.md MU2). Throws Fault `upload-unknown`. */
async function abortMultipart(
  { catalog, now, deleteLater }: MultipartParts,
  caller: ObjectCaller,
  key: string,
  id: string,
): Promise<void> {
  const upload = await findMultipart({ catalog, now }, caller, key, id)
  const removed = await catalog.removeMultipart(caller.bucketId, upload.id)
  if (removed === null) throw uploadUnknown()
  deleteLater(removed)
}

/** The bytes of an object, both inclusive, or all if the range is null. */
interface CopiedRange {
  readonly bucketId: BucketId
  readonly object: StoredObject
  readonly range: { readonly start: number; readonly end: number } | null
}

/**
 * Stores bytes of an object as a part (docs/interface.md MU10). Throws as putPart, ObjectFault `range-invalid`, and `key-unknown` if the object was deleted.
 */
async function copyPart(
  parts: MultipartParts & { readonly newId: () => ItemId },
  caller: ObjectCaller,
  upload: OpenMultipart,
  number: number,
  { bucketId, object, range }: CopiedRange,
): Promise<StoredPart> {
  const item = await parts.catalog.item(object.item.id)
  if (item === null || item.bucketId !== bucketId)
    throw new ObjectFault('key-unknown', 'There is no object with this key.')
  const { start, end } = range ?? { start: 0, end: item.size - 1 }
  if (range !== null && (start > end || end >= item.size))
    throw new ObjectFault(
      'range-invalid',
      `The object has ${item.size} bytes, and the range is not one of them.`,
    )
  const blob = await parts.openBytes(item)
  const md5 = createHash('md5')
  const checksum = upload.checksum && newChecksum(upload.checksum.algorithm)
  try {
    return await putPart(parts, caller, upload, number, {
      body: hashed(item.size === 0 ? [] : blob.stream(start, end), [md5, checksum]),
      size: end - start + 1,
      finish(sha256) {
        if (range === null) requireUndamaged(item, sha256)
        return {
          etag: md5.digest('hex'),
          checksum: checksum === null ? null : checksum.digest().toString('base64'),
        }
      },
    })
  } finally {
    await blob.close()
  }
}
