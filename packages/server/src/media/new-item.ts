import type { BlobStore } from '../blobs/blobs.ts'
import type { AddedItem, BucketId, Grant, NewItem } from '../catalog/records.ts'
import { cleanFilename, extensionOf } from '../core/filename.ts'
import type { ItemId } from '../core/media-id.ts'
import { storedType } from '../core/stored-type.ts'
import type { MeasurePicture } from './pictures/measure-picture.ts'
import { hasTiffStructure } from './pictures/metadata/plan-removal.ts'
import { isRawExtension } from './pictures/metadata/raw-tiff.ts'
import type { RemoveMetadata } from './pictures/remove-metadata.ts'
import { bytesOf, type ReceivedFile } from './receive-files.ts'
import { sniffType } from './sniff-type.ts'

/** The bucket of an upload. */
export type UploadBucket = Pick<Grant, 'bucketId' | 'removesMetadata'>

/** Called with each new item, before the response to its upload. Must return at once. */
export type OnStored = (bucketId: BucketId, item: NewItem) => void

export interface ItemParts {
  readonly blobs: Pick<BlobStore, 'peek'>
  readonly measurePicture: MeasurePicture
  readonly removeMetadata: RemoveMetadata
}

/**
 * Builds the item of a received file: its name, type and dimensions (docs/interface.md U7, U8). If the bucket removes metadata, `stored`
 * may be another file with its own id; then the caller discards the received file. Throws as RemoveMetadata,
 * and Fault `overloaded` if the type is needed for that and cannot be read.
 */
export async function newItem(
  parts: ItemParts,
  file: ReceivedFile,
  { bucketId, removesMetadata }: UploadBucket,
  given: {
    readonly id: ItemId
    /** As sent by the client. */
    readonly filename: string | null
    readonly declaredType: string | null
    readonly createdAt: number
    /** Null or left out for never. */
    readonly expiresAt?: number | null
  },
): Promise<{ readonly item: AddedItem; readonly stored: ReceivedFile }> {
  const filename = cleanFilename(given.filename)
  // Required where metadata are removed: with another type, the file would be stored with its metadata.
  const sniffing = sniffType(parts.blobs, file, { isRequired: removesMetadata })
  // Most small files have their types and dimensions at once. To await them would take 3 % of the time of such a file in a form.
  const sniffed = sniffing && (await sniffing)
  const type = storedType({ sniffed, declared: given.declaredType, filename, start: file })
  // A RAW file with the structure of TIFF is stored as it is sent.
  const isRaw = removesMetadata && isRawExtension(extensionOf(filename ?? '')) && hasTiffStructure(file.head)
  const stored =
    removesMetadata && !isRaw ? await parts.removeMetadata(file, type.contentType, bucketId) : file
  const measuring = parts.measurePicture(stored, type.contentType, bucketId)
  const dimensions = measuring && (await measuring)
  const item = {
    id: 'id' in stored && stored !== file ? stored.id : given.id,
    filename,
    ...type,
    size: stored.size,
    sha256: stored.sha256,
    width: dimensions?.width ?? null,
    height: dimensions?.height ?? null,
    createdAt: given.createdAt,
    bytes: bytesOf(stored),
    ...(given.expiresAt == null ? {} : { expiresAt: given.expiresAt }),
  }
  return { item, stored }
}
