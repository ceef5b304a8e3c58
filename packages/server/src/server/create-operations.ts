import { signLinksOperation } from '../access/sign-links.ts'
import { verifyAnyToken } from '../access/verify-any-token.ts'
import { verifyLinkOperation } from '../access/verify-link.ts'
import { verifyTokenOperation } from '../access/verify-token.ts'
import { createVariantList } from '../core/variant.ts'
import type { HttpSettings } from '../http/context.ts'
import { headersMemory } from '../http/media/cached-responses.ts'
import type { Operations } from '../http/operations.ts'
import { createBytesCache } from '../media/caching/bytes-cache.ts'
import { cachedBytesOperations } from '../media/caching/cached-bytes.ts'
import { checkReadinessOperation } from '../media/check-readiness.ts'
import type { ItemRemover } from '../media/deletion/remove-media.ts'
import { trashOperations } from '../media/deletion/trash.ts'
import { editItemOperation } from '../media/edit-media.ts'
import { findByNameOperation } from '../media/find-media.ts'
import { listItemsOperation } from '../media/items/list-items.ts'
import { listPageOperation } from '../media/listing/list-media.ts'
import { createPageLinkCache } from '../media/listing/page-link-cache.ts'
import type { OpenBytes } from '../media/open-bytes.ts'
import type { Variants } from '../media/pictures/open-variant.ts'
import { recordLinksOperation } from '../media/record-links.ts'
import { hasRoomForEvents } from '../media/space/event-room.ts'
import type { FreeSpace } from '../media/space/free-space.ts'
import {
  appendUploadWithSpaceCheck,
  createUploadWithSpaceCheck,
  storeItemsWithSpaceCheck,
  storeSmallFileWithSpaceCheck,
} from '../media/space-checks.ts'
import { storeItemsOperation } from '../media/store-media.ts'
import { storeSmallFileOperation } from '../media/store-small-file.ts'
import { appendUploadOperation } from '../media/uploads/append-upload.ts'
import { createUploadOperation } from '../media/uploads/create-upload.ts'
import { removeUploadOperation } from '../media/uploads/remove-upload.ts'
import type { StartContext } from './start-context.ts'
import type { Issuer } from './start-issuer.ts'
import type { UploadParts } from './start-uploads.ts'

/** The parts of MEDIABUCKET_CACHE. Bytes. */
const cacheSizes = (whole: number) => ({
  pages: Math.floor(whole / 5),
  pageLinks: Math.floor((whole * 2) / 5),
  bytes: Math.floor((whole * 2) / 5),
})

/** Creates the operations that HTTP requests call. */
export function createOperations(
  { config, log, metrics }: StartContext,
  parts: {
    readonly openBytes: OpenBytes
    readonly openVariant: Variants['open']
    readonly uploading: UploadParts
    readonly remover: Pick<ItemRemover, 'remove' | 'removeMany' | 'purge' | 'removeExpired'>
    readonly space: FreeSpace
    readonly settings: HttpSettings
    readonly issuer: Issuer | null
  },
): Operations {
  const { uploading, openBytes, openVariant, remover, space, settings, issuer } = parts
  const { catalog, blobs, locks } = uploading
  const sizes = cacheSizes(config.cache)
  const pageLinkCache = createPageLinkCache(settings.baseUrl, sizes.pageLinks)
  metrics.watchPageLinkCache(() => pageLinkCache.size())
  const cache = createBytesCache(sizes.bytes, headersMemory)
  metrics.watchBytesCache(cache.statistics)
  const storeItems = storeItemsOperation(uploading)
  const verifyToken = verifyTokenOperation({
    catalog,
    removeExpired: remover.removeExpired,
    now: Date.now,
    onTouchFailure: (err) => log.warn({ err }, 'the last use of a token was not recorded'),
  })
  const trash = trashOperations({ catalog, purge: remover.purge })
  const cached = cachedBytesOperations({
    cache,
    openBytes,
    openVariant,
    variantKeys: createVariantList(config.variants).keys,
    leavesFiles: config.sendfile !== null && config.blobsUrl === null,
  })
  return {
    verifyToken:
      issuer === null ? verifyToken : verifyAnyToken({ verifyToken, verifyUser: issuer.verifyUser }),
    listPage: listPageOperation({
      catalog,
      urls: settings,
      envelope: config.envelope,
      pageLinkCache,
      cacheSize: sizes.pages,
    }),
    listItems: listItemsOperation({ catalog }),
    storeItems: storeItemsWithSpaceCheck(space, storeItems),
    storeSmallFile: storeSmallFileWithSpaceCheck(
      space,
      storeSmallFileOperation({ ...uploading, storeItems }),
    ),
    createUpload: createUploadWithSpaceCheck(space, createUploadOperation(uploading)),
    appendUpload: appendUploadWithSpaceCheck(space, appendUploadOperation(uploading)),
    removeUpload: removeUploadOperation(uploading),
    waitForWriter: locks.waitForWriter,
    editItem: editItemOperation({ catalog }),
    removeItem: remover.remove,
    removeItems: remover.removeMany,
    listTrash: trash.listTrash,
    restoreItems: trash.restoreItems,
    purgeItems: remover.purge,
    emptyTrash: trash.emptyTrash,
    findByName: findByNameOperation({ catalog }),
    verifyLink: verifyLinkOperation({ catalog, now: Date.now }),
    signLinks: signLinksOperation({ catalog, urls: settings, now: Date.now }),
    recordLinks:
      config.audit === 'off'
        ? null
        : recordLinksOperation({ catalog, hasRoom: () => hasRoomForEvents(space.read()) }),
    openBytes: cached.openBytes,
    openVariant: cached.openVariant,
    cachedBytes: cached.cachedBytes,
    readiness: checkReadinessOperation({ catalog, space, blobs }),
  }
}
