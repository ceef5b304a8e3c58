import type { Config } from '../config/config.ts'
import { startPeriodicTask } from '../core/periodic-task.ts'
import type { MediaRemover } from '../media/deletion/remove-media.ts'
import type { MeasurePicture } from '../media/pictures/measure-picture.ts'
import { createFileReceivers, type FileReceiver } from '../media/receive-files.ts'
import { removeExpired } from '../media/uploads/remove-expired.ts'
import { createUploadLocks, type UploadLocks } from '../media/uploads/upload-locks.ts'
import type { OpenData } from './open-data.ts'
import type { StartContext } from './start-context.ts'

/** Milliseconds between sweeps; shorter where uploads expire sooner. */
const longestSweepInterval = 600_000

/** What all operations on uploads share. */
export interface UploadParts extends Pick<OpenData, 'catalog' | 'blobs'> {
  readonly newReceiver: () => FileReceiver
  readonly measurePicture: MeasurePicture
  readonly removeMedia: MediaRemover['remove']
  readonly locks: UploadLocks
  readonly maxFileSize: Config['maxFileSize']
  readonly expiry: Config['uploadExpiry']
  readonly now: () => number
}

/** Removes expired uploads and idempotency keys, now and periodically. */
export async function startUploads(
  { config, log, closers }: StartContext,
  {
    catalog,
    blobs,
    measurePicture,
    removeMedia,
  }: Pick<UploadParts, 'catalog' | 'blobs' | 'measurePicture' | 'removeMedia'>,
): Promise<{ uploading: UploadParts }> {
  const locks = createUploadLocks()
  closers.add('resumable uploads', () => locks.allReleased())
  const { maxFileSize, inlineSize, uploadExpiry: expiry } = config
  const uploading = {
    catalog,
    blobs,
    newReceiver: createFileReceivers({ blobs, inlineSize }),
    measurePicture,
    removeMedia,
    locks,
    maxFileSize,
    expiry,
    now: Date.now,
  }
  await removeExpired(uploading)
  const sweeps = startPeriodicTask({
    work: () => removeExpired(uploading),
    interval: Math.min(expiry, longestSweepInterval),
    onFailure: (err) => log.warn({ err }, 'expired uploads stay until the next sweep'),
  })
  closers.add('the expiry sweep', () => sweeps.stop())
  return { uploading }
}
