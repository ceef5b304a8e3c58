import type { Config } from '../config/config.ts'
import type { ItemRemover } from '../media/deletion/remove-media.ts'
import type { OnStored } from '../media/new-item.ts'
import type { MeasurePicture } from '../media/pictures/measure-picture.ts'
import type { RemoveMetadata } from '../media/pictures/remove-metadata.ts'
import { createFileReceivers, type FileReceiver } from '../media/receive-files.ts'
import type { UploadLocks } from '../media/uploads/upload-locks.ts'
import type { OpenData } from './open-data.ts'
import type { StartContext } from './start-context.ts'

/** What all operations on uploads share. */
export interface UploadParts extends Pick<OpenData, 'catalog' | 'blobs'> {
  readonly newReceiver: () => FileReceiver
  readonly measurePicture: MeasurePicture
  readonly removeMetadata: RemoveMetadata
  readonly removeItem: ItemRemover['remove']
  readonly locks: UploadLocks
  readonly onStored: OnStored
  readonly maxFileSize: Config['maxFileSize']
  readonly expiry: Config['uploadExpiry']
  readonly now: () => number
}

/** Creates what all operations on uploads share. */
export function startUploads(
  { config, closers }: StartContext,
  {
    catalog,
    blobs,
    measurePicture,
    removeMetadata,
    removeItem,
    locks,
    onStored,
  }: Omit<UploadParts, 'newReceiver' | 'maxFileSize' | 'expiry' | 'now'>,
): { uploading: UploadParts } {
  closers.add('resumable uploads', () => locks.allReleased())
  const { maxFileSize, inlineSize, uploadExpiry: expiry } = config
  const uploading = {
    catalog,
    blobs,
    newReceiver: createFileReceivers({ blobs, inlineSize }),
    measurePicture,
    removeMetadata,
    removeItem,
    locks,
    onStored,
    maxFileSize,
    expiry,
    now: Date.now,
  }
  return { uploading }
}
