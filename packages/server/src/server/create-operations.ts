import { createVerifyToken } from '../access/verify-token.ts'
import { type Operations, pageFormOf } from '../http/app.ts'
import { createFindByName } from '../media/find-media.ts'
import type { FreeSpace } from '../media/free-space.ts'
import { createListMedia } from '../media/listing/list-media.ts'
import { createLinkRibbon } from '../media/listing/page-link-cache.ts'
import { createReadiness } from '../media/readiness.ts'
import { createStoreMedia } from '../media/store-media.ts'
import { createAppendUpload } from '../media/uploads/append-upload.ts'
import { createCreateUpload } from '../media/uploads/create-upload.ts'
import { createRemoveUpload } from '../media/uploads/remove-upload.ts'
import { appendWithinSpace, createWithinSpace, storeWithinSpace } from '../media/within-space.ts'
import type { BoundAddress } from './bind-address.ts'
import type { StartContext } from './start-context.ts'
import type { UploadParts } from './start-uploads.ts'

/** Creates the operations that HTTP requests call. */
export function createOperations(
  { config, log, metrics }: StartContext,
  parts: Pick<Operations, 'openBytes' | 'openVariant'> & {
    readonly uploading: UploadParts
    readonly space: FreeSpace
    readonly settings: BoundAddress['settings']
  },
): Operations {
  const { uploading, space, settings, openBytes, openVariant } = parts
  const { catalog, blobs, turns, removeMedia } = uploading
  const ribbon = createLinkRibbon(settings.baseUrl, config.linkRibbon)
  metrics.watchPageLinkCache(() => ribbon.held())
  return {
    verifyToken: createVerifyToken({
      catalog,
      now: Date.now,
      onTouchFailure: (err) => log.warn({ err }, 'the last use of a token was not recorded'),
    }),
    listMedia: createListMedia({
      catalog,
      form: pageFormOf(settings),
      envelope: config.envelope,
      ribbon,
      cacheSize: config.pageCache,
    }),
    storeMedia: storeWithinSpace(space, createStoreMedia(uploading)),
    createUpload: createWithinSpace(space, createCreateUpload(uploading)),
    appendUpload: appendWithinSpace(space, createAppendUpload(uploading)),
    removeUpload: createRemoveUpload(uploading),
    settleUpload: turns.settle,
    removeMedia,
    findByName: createFindByName({ catalog }),
    openBytes,
    openVariant,
    readiness: createReadiness({ catalog, space, hasBytes: blobs.isReachable }),
  }
}
