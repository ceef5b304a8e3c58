import { chunkTooLarge, Fault, isOutage } from '../core/faults.ts'
import { isItemId, isUploadId, newItemId, newUploadId, type UploadId } from '../core/ids.ts'
import { requireFileSize, type UploadLimits } from '../core/quotas.ts'
import { runInSteps, throwFailures } from '../core/tasks.ts'
import { type Actor, requireScope, requireUnexpired, type Scope } from '../core/token-rules.ts'
import type { BlobStore, PartLog } from '../storage/blobs/blobs.ts'
import type { Catalog } from '../storage/catalog/catalog.ts'
import type { BucketId, Grant } from '../storage/catalog/records.ts'
import type { NewUpload, Upload } from '../storage/catalog/uploads.ts'
import type { FreeSpace } from './space.ts'
import type { OwnUploadLocks, UploadLocks } from './upload-locks.ts'

/** What the client says about the file. */
type UploadRequest = Pick<NewUpload, 'length' | 'metadata' | 'filename' | 'declaredType'>

/** Who creates an upload. */
type Creator = Pick<Grant, 'bucketId' | 'tokenId' | 'limits'> & UploadLimits

export type CreateUpload = ReturnType<typeof createUploadOperation>

/** Creates a resumable upload and reserves its length. Throws Fault `file-too-large`, `quota-exceeded`, `token-limit-exceeded` and `storage-full`. */
export function createUploadOperation(parts: {
  readonly catalog: Pick<Catalog, 'createUpload'>
  readonly space: Pick<FreeSpace, 'claim'>
  /** Bytes. */
  readonly maxFileSize: number
  /** Milliseconds. */
  readonly expiry: number
  readonly now: () => number
}) {
  const { catalog, space, maxFileSize, expiry, now } = parts
  return async function createUpload(creator: Creator, request: UploadRequest): Promise<Upload> {
    const { bucketId, tokenId, limits } = creator
    space.claim(request.length ?? 0).release()
    if (request.length !== null) checkFileSize(request.length, maxFileSize, creator)
    const upload = {
      ...request,
      id: newUploadId(),
      bucketId,
      itemId: newItemId(),
      expiresAt: now() + expiry,
      tokenId,
      limitedBy: limits?.id ?? null,
    }
    await catalog.createUpload(upload)
    return { ...upload, offset: 0, finished: false }
  }
}

/** The same for every reason, so that the ids of other buckets cannot be probed (docs/interface.md R10). */
export const uploadUnknown = (): Fault => new Fault('upload-unknown', 'There is no such upload.')

/** Who sends a request to an upload. */
type UploadCaller = Creator & Pick<Grant, 'expiresAt'> & { readonly isExpired?: boolean }

/**
 * The upload with this id, which may be any text, if it is the bucket's and has not expired. An upload with limits is found only with the
 * same limits. A token that has expired finds only the uploads that it created. Throws Fault `upload-unknown` and `token-expired`.
 */
export async function findUpload(
  catalog: Pick<Catalog, 'findUpload'>,
  caller: UploadCaller,
  id: string,
  now: number,
): Promise<Upload> {
  const { bucketId, tokenId, limits } = caller
  const upload = isUploadId(id) ? await catalog.findUpload(id) : null
  const isOwn = upload?.bucketId === bucketId && upload.limitedBy === (limits?.id ?? null)
  if (!isOwn || upload.tokenId !== tokenId) requireUnexpired(caller)
  if (!isOwn || upload.expiresAt <= now) throw uploadUnknown()
  return upload
}

/** Throws Fault `token-expired` and `scope-missing` unless the caller may remove the item of a finished upload (docs/interface.md R9). */
export function requireItemRemoval(
  caller: Parameters<typeof requireUnexpired>[0] & { readonly scopes: ReadonlySet<Scope> },
): void {
  requireUnexpired(caller)
  requireScope(caller, 'media:delete')
}

/** A chunk as its request describes it, before its bytes are read. */
export interface ChunkHeader {
  readonly offset: number
  /** The length of the file, where this request declares it. */
  readonly length?: number | null
  /** Bytes of the chunk, where known. */
  readonly declaredBytes?: number
}

/**
 * Throws the Fault for a chunk that does not fit its upload: `upload-offset-conflict`, `upload-malformed` or
 * `file-too-large`. The quotations are from tus 1.0.0.
 */
export function checkChunk(
  upload: Pick<Upload, 'offset' | 'length'>,
  { offset, length = null, declaredBytes = 0 }: ChunkHeader,
  maxFileSize: number,
  limits: UploadLimits,
): void {
  checkOffset(upload, offset)
  if (length !== null) checkLength(upload, length, maxFileSize, limits)
  const end = length ?? upload.length ?? maxFileSize
  requireFileSize(limits, offset + declaredBytes)
  if (offset + declaredBytes > end) throw chunkTooLarge(end - offset)
}

/**
 * As checkChunk, without the lock of the upload. If the token may refuse the file, the upload has to be removed, which requires the lock: so
 * only the offset is checked.
 */
export function checkUnlocked(
  upload: Pick<Upload, 'offset' | 'length'>,
  chunk: ChunkHeader,
  maxFileSize: number,
  limits: UploadLimits,
): void {
  if ((limits.limits ?? limits.fileLimits ?? null) !== null && upload.length === null)
    checkOffset(upload, chunk.offset)
  else checkChunk(upload, chunk, maxFileSize, limits)
}

function checkOffset(upload: Pick<Upload, 'offset'>, offset: number): void {
  // Core, PATCH: "The Upload-Offset header's value MUST be equal to the current offset of the resource. […] If the
  // offsets do not match, the Server MUST respond with the 409 Conflict status without modifying the upload resource."
  if (offset !== upload.offset)
    throw new Fault('upload-offset-conflict', `The upload is at offset ${upload.offset}.`)
}

function checkLength(
  { offset, length: known }: Pick<Upload, 'offset' | 'length'>,
  length: number,
  maxFileSize: number,
  limits: UploadLimits,
): void {
  // Creation: "Once set the length MUST NOT be changed." Clients repeat it when they retry the chunk that declared it.
  if (known !== null && length !== known)
    throw new Fault('upload-malformed', `Upload-Length was declared as ${known} and cannot be changed.`)
  if (length < offset)
    throw new Fault('upload-malformed', `Upload-Length must be at least the offset, ${offset}.`)
  checkFileSize(length, maxFileSize, limits)
}

/**
 * Creation: "If the length of the upload exceeds the maximum, […] the Server MUST respond with the 413 Request Entity Too
 * Large status."
 */
export function checkFileSize(length: number, maxFileSize: number, limits: UploadLimits): void {
  requireFileSize(limits, length)
  if (length > maxFileSize)
    throw new Fault('file-too-large', `A file may have at most ${maxFileSize} bytes.`, {
      members: { maximum: maxFileSize, unit: 'bytes' },
    })
}

export interface RemoveUploadParts {
  readonly catalog: Pick<Catalog, 'findUpload' | 'removeUpload'>
  readonly blobs: Pick<BlobStore, 'partialUploads'>
  readonly locks: Pick<UploadLocks, 'hold'>
}

interface ItemRemoval {
  readonly removeItem: (bucketId: BucketId, id: string, by: Actor) => Promise<void>
}

export type RemoveUpload = ReturnType<typeof removeUploadOperation>

/** Removes an upload with its bytes, and its item if it has become one (docs/interface.md R9). Throws Fault `upload-unknown`. */
export function removeUploadOperation(parts: RemoveUploadParts & ItemRemoval) {
  /**
   * `permitItemRemoval` throws unless the caller may remove items; it is called only for a finished upload. Returns whether
   * an item was removed.
   */
  return function removeUpload(
    id: UploadId,
    permitItemRemoval: () => void,
    by: Actor,
  ): Promise<{ item: boolean }> {
    return parts.locks.hold(id, async () => {
      for (;;) {
        const upload = await parts.catalog.findUpload(id)
        if (upload === null) throw uploadUnknown()
        if (upload.finished) permitItemRemoval()
        const item = upload.finished && (await removeItemOf(parts, upload, by))
        const isRemoved = await dropUpload(parts, upload)
        // Otherwise another server, whose locks are its own, has finished or removed it.
        if (isRemoved || upload.finished) return { item }
      }
    })
  }
}

/**
 * Removes the row and, unless it has become an item, the bytes. The caller holds the lock. False if there is no such row, or if another server has
 * finished the upload since it was read or, with `expiredAt`, has extended its expiry.
 */
export async function dropUpload(
  { catalog, blobs }: Omit<RemoveUploadParts, 'locks'>,
  upload: Upload,
  expiredAt: number | null = null,
): Promise<boolean> {
  // A row that the service did not write has no bytes.
  const hasBytes = isUploadId(upload.id) && isItemId(upload.itemId)
  // Before the row is removed, because only the row contains the name under which a failed attempt to finish left the bytes. If the catalog does
  // not return the upload, they are those of an item.
  if (hasBytes && !upload.finished && (await catalog.findUpload(upload.id))?.finished === false)
    await blobs.partialUploads.reclaim(upload.id, upload.itemId)
  const isRemoved = await catalog.removeUpload(upload.id, !upload.finished, expiredAt)
  if (isRemoved && hasBytes) await blobs.partialUploads.remove(upload.id)
  return isRemoved
}

/** Returns false if the item was deleted before. */
async function removeItemOf(
  { removeItem }: ItemRemoval,
  { bucketId, itemId }: Upload,
  by: Actor,
): Promise<boolean> {
  try {
    await removeItem(bucketId, itemId, by)
    return true
  } catch (error) {
    if (error instanceof Fault && error.code === 'media-unknown') return false
    throw error
  }
}

type ExpiryParts = RemoveUploadParts & {
  readonly catalog: Pick<Catalog, 'expiredUploads' | 'forgetRequests'>
  readonly locks: Pick<OwnUploadLocks, 'hold' | 'isHeld'>
  readonly now: () => number
  readonly isStopping?: () => boolean
}

/** Uploads that one step of their removal reads. */
const uploadsPerStep = 100

/**
 * Removes expired uploads (docs/interface.md R8) and expired idempotency keys (I5). Returns how many of each. Passes by uploads whose removal
 * fails, and throws after the work; ends at an outage (core/faults.ts).
 */
export async function removeExpiredUploads(
  parts: ExpiryParts,
): Promise<{ uploads: number; requests: number }> {
  const { catalog, now, isStopping = () => false } = parts
  const removed = { uploads: 0, requests: 0 }
  const failures: unknown[] = []
  let last: Upload | null = null
  try {
    await runInSteps(async () => {
      const expired: readonly Upload[] = await catalog.expiredUploads(now(), uploadsPerStep, last)
      for (const upload of expired) {
        if (isStopping()) break
        try {
          if (await removeExpiredUpload(parts, upload)) removed.uploads += 1
        } catch (error) {
          if (isOutage(error)) throw error
          failures.push(error)
        }
      }
      last = expired.at(-1) ?? null
      return expired.length === uploadsPerStep
    }, isStopping)
    await runInSteps(async () => {
      const requests = await catalog.forgetRequests(now())
      removed.requests += requests
      return requests > 0
    }, isStopping)
  } catch (error) {
    failures.unshift(error)
  }
  throwFailures(failures, 'the removal of expired uploads')
  return removed
}

/** Returns false for an upload that is in use, or that another server has removed. */
async function removeExpiredUpload(parts: ExpiryParts, expired: Upload): Promise<boolean> {
  const { catalog, locks, now } = parts
  const { id } = expired
  // A request that writes to it extends its expiry.
  if (locks.isHeld(id)) return false
  return locks.hold(id, async () => {
    const upload = await catalog.findUpload(id)
    const expiredAt = now()
    if (upload !== null && upload.expiresAt > expiredAt) return false
    return dropUpload(parts, upload ?? expired, expiredAt)
  })
}

/** The records of the parts of partial uploads, in the catalog. */
export const partLog = (
  catalog: Pick<Catalog, 'findUploadParts' | 'findUploadPieces' | 'beginParts' | 'storeParts'>,
): PartLog => ({
  read: catalog.findUploadParts,
  pieces: catalog.findUploadPieces,
  begin: catalog.beginParts,
  store: catalog.storeParts,
})
