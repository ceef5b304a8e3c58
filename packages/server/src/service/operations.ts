import type { Issuer } from '../access/issuer-users.ts'
import { AccessKeys } from '../access/key-access.ts'
import { requireOwnBucketOperation, verifyServiceTokenOperation } from '../access/service-access.ts'
import { signLinksOperation, verifyLinkOperation } from '../access/signed-links.ts'
import { verifyTokenOperation } from '../access/token-operations.ts'
import { LogReader } from '../audit/audit-operations.ts'
import type { BucketDeleter } from '../buckets/bucket-deletion.ts'
import { listBucketsOperation } from '../buckets/bucket-operations.ts'
import { listUsageOperation } from '../buckets/usage-operations.ts'
import { BucketVariants } from '../core/bucket-pictures.ts'
import type { ItemId, UploadId } from '../core/ids.ts'
import { BytesCache, cachedBytesOperations, type OpenBytes } from '../downloads/bytes-cache.ts'
import { headersMemory } from '../downloads/bytes-routes.ts'
import { Feed } from '../feed/change-feed.ts'
import { AddressGuard, createNameResolver } from '../http/address-guard.ts'
import type { HttpSettings } from '../http/context.ts'
import type { ItemRemover } from '../items/deletion.ts'
import {
  addKeysOperation,
  listItemsOperation,
  listLabelsOperation,
  listNumberedOperation,
} from '../items/item-list-operations.ts'
import { editItemOperation, findByNameOperation, labelItemsOperation } from '../items/item-operations.ts'
import { recordLinksOperation } from '../items/links.ts'
import { trashOperations } from '../items/trash-operations.ts'
import { PageLinkCache } from '../listing/page-link-cache.ts'
import { listPageOperation } from '../listing/pages.ts'
import { multipartOperations } from '../objects/multipart-operations.ts'
import { objectOperations } from '../objects/object-operations.ts'
import { removeStaleOf } from '../pictures/stale-variants.ts'
import type { Pictures } from '../pictures/start-pictures.ts'
import type { BucketId, NewItem } from '../storage/catalog/records.ts'
import { openAuditLog } from '../storage/engines.ts'
import { storeOperations } from '../uploads/commit.ts'
import { createFileReceivers } from '../uploads/received-files.ts'
import { appendUploadOperation } from '../uploads/resumable-chunks.ts'
import { createUploadOperation, removeUploadOperation } from '../uploads/resumable-uploads.ts'
import { type FreeSpace, hasRoomForEvents } from '../uploads/space.ts'
import type { UploadLocks } from '../uploads/upload-locks.ts'
import { UrlUploads } from '../uploads/url-uploads.ts'
import { createPoster } from '../webhooks/guarded-post.ts'
import { WebhookOperations } from '../webhooks/webhook-operations.ts'
import type { OpenData, StartContext } from './data.ts'
import { checkReadinessOperation } from './monitoring.ts'
import { openScanner, startScans } from './start-scanner.ts'

/** The operations that clients call over HTTP, by feature. */
export type Operations = ReturnType<typeof createOperations>

/** Creates the operations that HTTP requests call. */
export function createOperations(
  { config, log, metrics, closers, peers }: StartContext,
  parts: Pick<OpenData, 'catalog' | 'blobs'> & {
    readonly space: FreeSpace
    readonly locks: UploadLocks
    readonly openBytes: OpenBytes
    readonly pictures: Pictures
    readonly remover: ItemRemover
    readonly deleter: BucketDeleter
    readonly settings: HttpSettings
    readonly issuer: Issuer | null
  },
) {
  const { catalog, blobs, space, locks, openBytes, pictures, remover, deleter, settings, issuer } = parts
  const now = Date.now
  const sizes = cacheSizes(config.cache)

  const verifying: Parameters<typeof verifyTokenOperation>[0] = {
    catalog,
    removeExpired: (id) => remover.removeExpired(id),
    now,
    onTouchFailure: (err) => log.warn({ err }, 'the last use of a token was not recorded'),
  }
  const verifyToken = verifyTokenOperation(verifying)
  const signLinks = signLinksOperation({ catalog, urls: settings, now })

  const pageLinkCache = new PageLinkCache(settings.baseUrl, sizes.pageLinks)
  metrics.watchPageLinkCache(() => pageLinkCache.size())
  const listPage = listPageOperation({
    catalog,
    urls: settings,
    envelope: config.envelope,
    pageLinkCache,
    cacheSize: sizes.pages,
  })

  const removeItem = remover.remove.bind(remover)
  const purgeItems = remover.purge.bind(remover)

  const scanner = openScanner(config)
  const uploading = {
    catalog,
    blobs,
    newReceiver: createFileReceivers({ blobs, inlineSize: config.inlineSize }),
    measurePicture: pictures.measure,
    removeMetadata: pictures.removeMetadata,
    readTaken: pictures.readTaken,
    scanFile: scanner && startScans({ config, log, metrics }, scanner, blobs),
    removeItem,
    locks,
    space,
    onStored: (bucketId: BucketId, item: NewItem) => {
      metrics.uploadedItems.inc()
      metrics.uploadedBytes.inc(item.size)
      if (config.renderAhead) pictures.renderAhead(bucketId, item)
    },
    maxFileSize: config.maxFileSize,
    expiry: config.uploadExpiry,
    now,
  }

  const storing = storeOperations(uploading)
  const deleteLater = remover.deleteLater.bind(remover)

  const variants = new BucketVariants(config)
  const onFocused = (id: ItemId) =>
    void removeStaleOf({ catalog, blobs, variants }, id).catch((err: unknown) =>
      log.warn({ id, err }, 'variants with an earlier focus stay until their item is removed'),
    )

  const cache = new BytesCache(sizes.bytes, headersMemory)
  metrics.watchBytesCache(() => cache.statistics())

  const auditReader = new LogReader(() => openAuditLog(config))
  closers.add('the reader of the audit log', () => auditReader.close())

  return {
    audit: { reader: auditReader },
    access: {
      // JWTs have dots, and tokens of this service have none.
      verifyToken:
        issuer === null
          ? verifyToken
          : (token: string, grace?: number) =>
              token.includes('.') ? issuer.verifyUser(token) : verifyToken(token, grace),
      service: verifyServiceTokenOperation({ ...verifying, catalog }),
      requireOwnBucket: requireOwnBucketOperation(catalog),
      keys: new AccessKeys({ ...verifying, catalog }),
    },
    listing: { listPage, signLinks },
    changes: { feed: new Feed({ catalog }), signLinks },
    items: {
      addKeys: addKeysOperation({ catalog }),
      listItems: listItemsOperation({ catalog }),
      listLabels: listLabelsOperation({ catalog }),
      listNumbered: listNumberedOperation({ catalog }),
      editItem: editItemOperation({ catalog, onFocused }),
      labelItems: labelItemsOperation({ catalog }),
      removeItem,
      removeItemIf: remover.removeIf.bind(remover),
      removeItems: remover.removeMany.bind(remover),
      replaceItems: remover.replaceMany.bind(remover),
      purgeItems,
      ...trashOperations({ catalog, purge: purgeItems }),
      signLinks,
      recordLinks:
        config.audit === 'off'
          ? null
          : recordLinksOperation({ catalog, hasRoom: () => hasRoomForEvents(space.read()) }),
    },
    uploads: {
      ...storing,
      createUpload: createUploadOperation(uploading),
      appendUpload: appendUploadOperation(uploading),
      removeUpload: removeUploadOperation(uploading),
      waitForWriter: (id: UploadId) => locks.waitForWriter(id),
      urlUploads: new UrlUploads({
        ...storing,
        guard:
          config.urlUploads && new AddressGuard({ ...config.urlUploads, resolveName: createNameResolver() }),
        maxFileSize: config.maxFileSize,
        peers,
        onOutcome: (outcome) => metrics.urlUploads.inc({ outcome }),
      }),
    },
    objects: objectOperations({ catalog, storeFile: storing.storeFile, openBytes, deleteLater, now }),
    multiparts: multipartOperations({ ...uploading, ...storing, openBytes, deleteLater }),
    buckets: {
      listBuckets: listBucketsOperation({ catalog }),
      listUsage: listUsageOperation({ catalog }),
      deleter,
    },
    webhooks: new WebhookOperations({
      catalog,
      poster: createPoster({ allowed: config.webhookAllow }),
      urls: settings,
      signLinks,
      now,
    }),
    downloads: {
      ...cachedBytesOperations({
        cache,
        openBytes,
        openVariant: pictures.openVariant,
        variantKeys: variants.service.keys,
        leavesFiles: config.sendfile !== null && config.blobsUrl === null,
      }),
      findByName: findByNameOperation({ catalog }),
      verifyLink: verifyLinkOperation({ catalog, now }),
    },
    monitoring: {
      readiness: checkReadinessOperation({
        ...{ catalog, space, blobs, log },
        scanner: config.scanFailure === 'refuse' ? scanner : null,
        isReadOnly: () => settings.readOnly,
      }),
    },
  }
}

/** The parts of MEDIABUCKET_CACHE. Bytes. */
const cacheSizes = (whole: number) => ({
  pages: Math.floor(whole / 5),
  pageLinks: Math.floor((whole * 2) / 5),
  bytes: Math.floor((whole * 2) / 5),
})
