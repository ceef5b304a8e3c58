import { cleanFilename, cleanPath } from '@mediabucket/client/rules'
import {
  hasTiffStructure,
  isRawExtension,
  isRemovableType,
  mayHaveRemovableMetadata,
} from '@mediabucket/strip-metadata'
import { Fault } from '../core/faults.ts'
import type { ItemId } from '../core/ids.ts'
import type { Labels } from '../core/item-labels.ts'
import { extensionOf, isPath } from '../core/names.ts'
import { limitsTypes, requireType, type UploadLimits, withFixedLabels } from '../core/quotas.ts'
import { decodeText, namedTypes, storedType } from '../core/stored-type.ts'
import { isDecoded } from '../core/variants.ts'
import type { MeasurePicture, ReadTaken, RemoveMetadata } from '../pictures/received-pictures.ts'
import type { BlobStore } from '../storage/blobs/blobs.ts'
import type { ReceivedFile } from '../storage/blobs/received-file.ts'
import type { AddedItem, Grant } from '../storage/catalog/records.ts'
import { sniffType } from './file-type.ts'
import type { ScanFile } from './scanner.ts'

/** What a client says about a file, as it was sent. */
export interface SentFile {
  /** Its last name; what is before it is the path within a folder. */
  readonly filename: string | null
  readonly declaredType: string | null
  /** Null or left out for none. */
  readonly labels?: Labels | null
  /** As core/focus.ts stores it. Null or left out for none. */
  readonly focus?: number | null
  /**
   * True if the filename is the key of an object: the path is that key or none, and a bucket that removes metadata refuses the types that it would change,
   * because the client compares the size and the checksum.
   */
  readonly isKey?: boolean
}

/** Milliseconds. */
const day = 86_400_000

/** The bucket of an upload, and the limits of its token. */
export type UploadBucket = Pick<Grant, 'bucketId' | 'removesMetadata' | 'limits'> & UploadLimits

/** When a new item expires, by the lifetime of its token or its bucket; null for never. */
export const defaultExpiry = (itemDays: number | null, now: number): number | null =>
  itemDays === null ? null : now + itemDays * day

/** When a new item expires, if the client states a time: not after the lifetime of its token (docs/interface.md T9). */
export const statedExpiry = (stated: number, limits: Grant['limits'], now: number): number =>
  Math.min(stated, defaultExpiry(limits?.itemDays ?? null, now) ?? stated)

export interface ItemParts {
  readonly blobs: Pick<BlobStore, 'peek'>
  readonly measurePicture: MeasurePicture
  readonly removeMetadata: RemoveMetadata
  readonly readTaken: ReadTaken
  /** Null or left out if files are not scanned. */
  readonly scanFile?: ScanFile | null
}

/**
 * Throws Fault `type-refused` for an object in a bucket that removes metadata, if its declared type or its name says that the removal may change it. Call it
 * before the bytes are read.
 */
export function requireKeptType(
  { removesMetadata }: Pick<UploadBucket, 'removesMetadata'>,
  { filename, declaredType, isKey = false }: SentFile,
): void {
  if (!isKey || removesMetadata === false) return
  const type = namedTypes(declaredType, filename).find(isRemovableType)
  if (type !== undefined) throw typeChanged(type)
}

/** The path of an object: its key, if a file within a folder can have it as its path (docs/interface.md OK1). */
const pathOfKey = (key: string): string | null => (isPath(key) ? key : null)

const typeChanged = (contentType: string) =>
  new Fault(
    'type-refused',
    `The bucket removes metadata from files of the type ${contentType}, so that their sizes and checksums change. Upload them over HTTP, or into another bucket.`,
  )

/**
 * Builds the item of a received file: its name, type and dimensions (docs/interface.md U7, U8). If the bucket removes metadata, `stored`
 * may be another file with its own id; then the caller discards the received file. Throws as RemoveMetadata,
 * ScanFile, Fault `type-refused`, and Fault `overloaded` if the type is needed and cannot be read.
 */
export async function newItem(
  parts: ItemParts,
  file: ReceivedFile,
  bucket: UploadBucket,
  sent: SentFile,
  given: { readonly id: ItemId; readonly createdAt: number; readonly expiresAt: number | null },
): Promise<{ readonly item: AddedItem; readonly stored: ReceivedFile }> {
  const filename = cleanFilename(sent.filename)
  const path = sent.isKey ? pathOfKey(sent.filename ?? '') : cleanPath(sent.filename)
  const { bucketId, removesMetadata } = bucket
  const labels = withFixedLabels(bucket.limits, sent.labels)
  // Required where metadata are removed: with another type, the file would be stored with its metadata.
  const isRequired = removesMetadata !== false || limitsTypes(bucket)
  const sniffing = sniffType(parts.blobs, file, { isRequired })
  // Most small files have their types and dimensions at once. To await them would delay each file of a form by a tick.
  const sniffed = sniffing && (await sniffing)
  const type = storedType({ sniffed, declared: sent.declaredType, filename, start: file })
  requireType(bucket, { contentType: type.contentType, sniffed: sniffed?.mime ?? null, head: file.head })
  // A RAW file with the structure of TIFF is stored as it is sent.
  const isRaw = isRawExtension(extensionOf(filename ?? '')) && hasTiffStructure(file.head)
  const isSearched = removesMetadata !== false && !isRaw
  const isText = (start: Uint8Array) => decodeText(start) !== null
  if (sent.isKey && isSearched && mayHaveRemovableMetadata(file.head, file.size, type.contentType, isText))
    throw typeChanged(type.contentType)
  // Before a decoder reads it.
  if (parts.scanFile) await parts.scanFile(file, bucketId)
  const keepsTaken = removesMetadata === 'except-taken' && !type.contentType.startsWith('audio/')
  const removal = { contentType: type.contentType, bucketId, keepsTaken }
  const { stored, reading } = isSearched
    ? await parts.removeMetadata(file, removal)
    : { stored: file, reading: null }
  // Of the file as it was sent. Most files are no pictures, and nothing is awaited for them.
  const later = removesMetadata === true || reading ? null : parts.readTaken(file, type.contentType)
  const { taken, isRead } = (later && (await later)) ?? { taken: reading?.taken ?? null, isRead: true }
  const dimensions = isDecoded(type.contentType) ? await parts.measurePicture(stored, bucketId) : null
  const item = {
    id: 'id' in stored && stored !== file ? stored.id : given.id,
    filename,
    ...type,
    size: stored.size,
    sha256: stored.sha256,
    width: dimensions?.width ?? null,
    height: dimensions?.height ?? null,
    createdAt: given.createdAt,
    bytes: 'bytes' in stored ? stored.bytes : null,
    ...(given.expiresAt === null ? {} : { expiresAt: given.expiresAt }),
    ...(path === null ? {} : { path }),
    ...(labels === null ? {} : { labels }),
    ...(sent.focus == null ? {} : { focus: sent.focus }),
    ...(taken === null ? { takenRead: isRead } : { takenAt: taken.time, takenOffset: taken.offset }),
  }
  return { item, stored }
}
