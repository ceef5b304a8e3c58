import type { SignLinks } from '../access/sign-links.ts'
import type { VerifyLink } from '../access/verify-link.ts'
import type { verifyTokenOperation } from '../access/verify-token.ts'
import type { CachedBytesOperations } from '../media/caching/cached-bytes.ts'
import type { checkReadinessOperation } from '../media/check-readiness.ts'
import type { ItemRemover } from '../media/deletion/remove-media.ts'
import type { TrashOperations } from '../media/deletion/trash.ts'
import type { EditItem } from '../media/edit-media.ts'
import type { findByNameOperation } from '../media/find-media.ts'
import type { ListItems } from '../media/items/list-items.ts'
import type { ListPage } from '../media/listing/list-media.ts'
import type { RecordLinks } from '../media/record-links.ts'
import type { StoreItems } from '../media/store-media.ts'
import type { StoreSmallFile } from '../media/store-small-file.ts'
import type { AppendUpload } from '../media/uploads/append-upload.ts'
import type { CreateUpload } from '../media/uploads/create-upload.ts'
import type { RemoveUpload } from '../media/uploads/remove-upload.ts'
import type { UploadLocks } from '../media/uploads/upload-locks.ts'

/**
 * The operations that clients call over HTTP. The types are those of the functions themselves, so that an editor finds the code of an
 * operation from its call.
 */
export interface Operations {
  readonly verifyToken: ReturnType<typeof verifyTokenOperation>
  readonly listPage: ListPage
  readonly listItems: ListItems
  readonly storeItems: StoreItems
  readonly storeSmallFile: StoreSmallFile
  readonly createUpload: CreateUpload
  readonly appendUpload: AppendUpload
  readonly removeUpload: RemoveUpload
  readonly waitForWriter: UploadLocks['waitForWriter']
  readonly editItem: EditItem
  readonly removeItem: ItemRemover['remove']
  readonly removeItems: ItemRemover['removeMany']
  readonly listTrash: TrashOperations['listTrash']
  readonly restoreItems: TrashOperations['restoreItems']
  readonly purgeItems: ItemRemover['purge']
  readonly emptyTrash: TrashOperations['emptyTrash']
  readonly findByName: ReturnType<typeof findByNameOperation>
  readonly verifyLink: VerifyLink
  readonly signLinks: SignLinks
  /** Null if the audit log is off. */
  readonly recordLinks: RecordLinks | null
  readonly openBytes: CachedBytesOperations['openBytes']
  readonly openVariant: CachedBytesOperations['openVariant']
  readonly cachedBytes: CachedBytesOperations['cachedBytes']
  readonly readiness: ReturnType<typeof checkReadinessOperation>
}
