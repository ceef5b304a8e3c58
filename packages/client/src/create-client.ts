import { fetchBucket } from './bucket.ts'
import { getBytes } from './bytes.ts'
import { fetchLatestCursor, iterateChanges } from './changes.ts'
import type { Client } from './client.ts'
import { type ClientOptions, sendSettings } from './client-options.ts'
import { fetchItemPage, type ItemOptions, iterateItems } from './item-list.ts'
import { fetchLabels } from './labels.ts'
import { createLink, createLinks } from './links.ts'
import { deleteMany, deleteMedia, describeMedia, describeTagged, labelMany, updateMedia } from './media.ts'
import { type CrawlOptions, fetchPage, fetchPageUnless, iteratePages } from './page.ts'
import { createTokenManager, fetchToken } from './tokens.ts'
import { deleteFromTrash, emptyTrash, iterateTrash, restoreItems } from './trash.ts'
import { deleteUpload } from './tus.ts'
import { uploadForm, uploadMedia } from './upload.ts'
import { endpointsOf, mediaIdOf } from './urls.ts'
import { createWebhookManager } from './webhooks.ts'

/** Creates a client. Throws a `TypeError` for invalid options. Sends no request. */
export function createClient(options: ClientOptions): Client {
  const settings = sendSettings(options)
  const endpoints = endpointsOf(options.url)
  const uploads = { settings, endpoints, resuming: new Set<string>() }

  const pages = (options: CrawlOptions = {}) => iteratePages(settings, endpoints, options)
  const items = (options: ItemOptions = {}) => iterateItems(settings, endpoints, options)
  async function* media(options?: CrawlOptions): AsyncGenerator<string, void, undefined> {
    for await (const page of pages(options)) yield* page.data
  }

  // Async functions, so that a wrong argument rejects the call.
  const client: Client = {
    listPage: async (number, options = {}) => await fetchPage(settings, endpoints, number, options),
    listPageUnless: async (etag, number, options = {}) =>
      await fetchPageUnless(settings, endpoints, etag, number, options),
    pages,
    media,
    items,
    itemPage: async (options = {}) => await fetchItemPage(settings, endpoints, options),
    changes: (options = {}) => iterateChanges(settings, endpoints, options),
    latestCursor: async (options = {}) => await fetchLatestCursor(settings, endpoints, options),
    labels: async (options = {}) => await fetchLabels(settings, endpoints, options),
    search: (name, options = {}) => items({ ...options, name }),
    upload: async (source, options = {}) => await uploadMedia(uploads, source, options),
    uploadAll: async (files, options = {}) => await uploadForm(uploads, files, options),
    // Loaded on demand, so that pages that do not use it are not larger.
    uploadFromUrl: async (url, options = {}) =>
      (await import('./url-upload.ts')).uploadFromUrl(settings, endpoints, url, options),
    deleteUpload: async (id, options = {}) => await deleteUpload(settings, endpoints, id, options),
    get: async (item, options = {}) => await getBytes(settings, endpoints, item, options),
    describe: async (item, options = {}) =>
      await describeMedia(settings, endpoints, mediaIdOf(item), options),
    describeTagged: async (item, options = {}) =>
      await describeTagged(settings, endpoints, mediaIdOf(item), options),
    update: async (item, changes, options = {}) =>
      await updateMedia(settings, endpoints, mediaIdOf(item), changes, options),
    delete: async (item, options = {}) => await deleteMedia(settings, endpoints, mediaIdOf(item), options),
    deleteMany: async (items, options = {}) => await deleteMany(settings, endpoints, items, options),
    labelMany: async (items, labels, options = {}) =>
      await labelMany(settings, endpoints, items, labels, options),
    trash: (options = {}) => iterateTrash(settings, endpoints, options),
    restore: async (items, options = {}) => await restoreItems(settings, endpoints, items, options),
    deleteFromTrash: async (items, options = {}) =>
      await deleteFromTrash(settings, endpoints, items, options),
    emptyTrash: async (options = {}) => await emptyTrash(settings, endpoints, options),
    createLink: async (item, options = {}) => await createLink(settings, endpoints, item, options),
    createLinks: async (items, options = {}) => await createLinks(settings, endpoints, items, options),
    bucket: async (options = {}) => await fetchBucket(settings, endpoints, options),
    whoami: async (options = {}) => await fetchToken(settings, endpoints, options),
    tokens: createTokenManager(settings, endpoints),
    webhooks: createWebhookManager(settings, endpoints),
  }
  return Object.freeze(client)
}
