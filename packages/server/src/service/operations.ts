import { signLinksOperation, verifyLinkOperation } from '../access/signed-links.ts'
import { type RemoveExpired, verifyTokenOperation } from '../access/tokens.ts'
import { createVariantList } from '../core/variants.ts'
import { cachedBytesOperations, createBytesCache, type OpenBytes } from '../downloads/bytes-cache.ts'
import { headersMemory } from '../downloads/bytes-routes.ts'
import type { VerifiedGrant } from '../http/authorizer.ts'
import type { HttpSettings } from '../http/context.ts'
import type { ItemRemover } from '../items/deletion.ts'
import { listItemsOperation } from '../items/item-lists.ts'
import { editItemOperation, findByNameOperation } from '../items/items.ts'
import { recordLinksOperation } from '../items/links.ts'
import { trashOperations } from '../items/trash.ts'
import { createPageLinkCache } from '../listing/page-link-cache.ts'
import { listPageOperation } from '../listing/pages.ts'
import type { MeasurePicture, RemoveMetadata } from '../pictures/received-pictures.ts'
import type { Variants } from '../pictures/variants.ts'
import type { Catalog } from '../storage/catalog/catalog.ts'
import { type OnStored, storeOperations } from '../uploads/commit.ts'
import { createFileReceivers, type FileReceiver } from '../uploads/received-files.ts'
import { appendUploadOperation } from '../uploads/resumable-chunks.ts'
import { createUploadOperation, removeUploadOperation } from '../uploads/resumable-uploads.ts'
import { type FreeSpace, hasRoomForEvents } from '../uploads/space.ts'
import type { UploadLocks } from '../uploads/upload-locks.ts'
import type { Config } from './config.ts'
import type { OpenData, StartContext } from './data.ts'
import type { GallerySignIn } from './gallery-routes.ts'
import { checkReadinessOperation } from './monitoring.ts'
import type { Operations } from './routes.ts'

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
    // JWTs have dots, and tokens of this service have none.
    verifyToken:
      issuer === null
        ? verifyToken
        : (token) => (token.includes('.') ? issuer.verifyUser(token) : verifyToken(token)),
    listPage: listPageOperation({
      catalog,
      urls: settings,
      envelope: config.envelope,
      pageLinkCache,
      cacheSize: sizes.pages,
    }),
    listItems: listItemsOperation({ catalog }),
    ...storeOperations({ ...uploading, space }),
    createUpload: createUploadOperation({ ...uploading, space }),
    appendUpload: appendUploadOperation({ ...uploading, space }),
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

/** What all operations on uploads share. */
export interface UploadParts extends Pick<OpenData, 'catalog' | 'blobs'> {
  readonly newReceiver: () => FileReceiver
  readonly measurePicture: MeasurePicture
  readonly removeMetadata: RemoveMetadata
  readonly removeItem: ItemRemover['remove']
  readonly locks: UploadLocks
  readonly onStored: OnStored | null
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

/** One line of the log for each reason and minute, so that refused tokens do not fill it. Milliseconds. */
const refusalInterval = 60_000

/** Verifies the tokens of the issuer. */
export interface Issuer {
  readonly verifyUser: (token: string) => Promise<VerifiedGrant>
  /** Null if the gallery offers no sign-in with the issuer. */
  readonly signIn: GallerySignIn | null
}

/** Prepares the verification of JWTs; null if no issuer is configured. The start does not wait for the issuer. */
export async function startIssuer(
  { config, log }: StartContext,
  { catalog, removeExpired }: { readonly catalog: Catalog; readonly removeExpired: RemoveExpired },
): Promise<Issuer | null> {
  const settings = config.issuer
  if (settings === null) return null
  // The library is loaded only if it is used.
  const [{ clientMetadata }, { createIssuerKeys }, { verifyJwtOperation }, { verifyUserOperation }] =
    await Promise.all([
      import('../access/issuer-keys.ts'),
      import('../access/issuer-keys.ts'),
      import('../access/issuer-users.ts'),
      import('../access/issuer-users.ts'),
    ])
  const { issuer } = settings
  let isAvailable: boolean | null = null
  const keys = createIssuerKeys(settings, {
    now: Date.now,
    onFailure(err) {
      if (isAvailable !== false)
        log.warn(
          { err, issuer },
          'the keys of the issuer cannot be requested; earlier ones remain in use for a day',
        )
      isAvailable = false
    },
    onSuccess() {
      if (isAvailable !== true) log.info({ issuer }, 'received the keys of the issuer')
      isAvailable = true
    },
  })
  void keys.refresh()

  const loggedAt = new Map<string, number>()
  function onRefusal(reason: string): void {
    const at = Date.now()
    if (Math.abs(at - (loggedAt.get(reason) ?? 0)) < refusalInterval) return
    loggedAt.set(reason, at)
    log.warn({ reason }, 'refused a token of the issuer; further ones of this minute are not logged')
  }

  const verifyJwt = verifyJwtOperation(settings, { keys, now: Date.now, onRefusal })
  const verifyUser = verifyUserOperation(settings, {
    verifyJwt,
    catalog,
    removeExpired,
    now: Date.now,
    onTouchFailure: (err) => log.warn({ err }, 'the last use of a user was not recorded'),
  })
  const { signIn } = settings
  return {
    verifyUser,
    signIn: signIn && {
      ...signIn,
      metadata() {
        const discovery = keys.discovery()
        return discovery && clientMetadata(issuer, discovery)
      },
    },
  }
}
