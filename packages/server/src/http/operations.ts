import type { VerifiedGrant } from '../access/expired-items.ts'
import type { SignLinks } from '../access/sign-links.ts'
import type { VerifyLink } from '../access/verify-link.ts'
import type { Media } from '../catalog/records.ts'
import type { UploadId } from '../core/upload-id.ts'
import type { CachedBytesOperations } from '../media/caching/cached-bytes.ts'
import type { Readiness } from '../media/check-readiness.ts'
import type { MediaRemover } from '../media/deletion/remove-media.ts'
import type { TrashOperations } from '../media/deletion/trash.ts'
import type { EditMedia } from '../media/edit-media.ts'
import type { ListItems } from '../media/items/list-items.ts'
import type { ListMedia } from '../media/listing/list-media.ts'
import type { OpenVariant } from '../media/pictures/open-variant.ts'
import type { RecordLinks } from '../media/record-links.ts'
import type { StoreMedia } from '../media/store-media.ts'
import type { StoreSmallFile } from '../media/store-small-file.ts'
import type { AppendUpload } from '../media/uploads/append-upload.ts'
import type { CreateUpload } from '../media/uploads/create-upload.ts'
import type { RemoveUpload } from '../media/uploads/remove-upload.ts'

/** The operations that clients call over HTTP. */
export interface Operations extends TrashOperations {
  readonly verifyToken: (token: string) => Promise<VerifiedGrant>
  readonly listMedia: ListMedia
  readonly listItems: ListItems
  readonly storeMedia: StoreMedia
  readonly storeSmallFile: StoreSmallFile
  readonly createUpload: CreateUpload
  readonly appendUpload: AppendUpload
  readonly removeUpload: RemoveUpload
  /** Waits for the request that writes to the upload (UploadLocks). */
  readonly waitForWriter: (id: UploadId) => Promise<void>
  readonly editMedia: EditMedia
  readonly removeMedia: MediaRemover['remove']
  readonly purgeMedia: MediaRemover['purge']
  readonly removeManyMedia: MediaRemover['removeMany']
  readonly findByName: (name: string) => Promise<Media | null>
  readonly verifyLink: VerifyLink
  readonly signLinks: SignLinks
  /** Null if the audit log is off. */
  readonly recordLinks: RecordLinks | null
  readonly openBytes: (media: Media) => Promise<OpenVariant>
  readonly openVariant: CachedBytesOperations['openVariant']
  readonly cachedBytes: CachedBytesOperations['cachedBytes']
  readonly readiness: () => Promise<Readiness>
}
