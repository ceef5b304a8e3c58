import { type Bucket, readBucket } from './bucket.ts'
import type { Client, CrawlOptions } from './client.ts'
import { type CallOptions, type ClientOptions, type GetOptions, sendSettings } from './client-options.ts'
import { type DeletedItems, deleteMany } from './delete-many.ts'
import { type DescribeOptions, describeMedia, describeTagged, type TaggedMedia } from './describe-media.ts'
import { endpointsOf } from './endpoints.ts'
import { AnswerError } from './errors/answer-error.ts'
import { getBytes } from './get-bytes.ts'
import { type ItemOptions, iterateItems } from './item-list.ts'
import { createLink, createLinks, type LinkOptions } from './links.ts'
import type { Media } from './media.ts'
import { mediaIdOf } from './media-reference.ts'
import { nextPageNumber, type Page, readPage, type TaggedPage } from './page.ts'
import { acceptJson, jsonReader } from './read-json.ts'
import { send } from './send.ts'
import { readToken, type Token } from './token.ts'
import { createTokenManager } from './token-manager.ts'
import { deleteFromTrash, emptyTrash, iterateTrash, restoreItems, type TrashedMedia } from './trash.ts'
import { type MediaChanges, type UpdateOptions, updateMedia } from './update-media.ts'
import { type UploadOptions, uploadMedia } from './upload.ts'
import type { UploadSource } from './upload-content.ts'
import { type FormFile, type UploadAllOptions, uploadForm } from './upload-form.ts'

/** Creates a client. Throws a `TypeError` for invalid options. Sends no request. */
export function createClient(options: ClientOptions): Client {
  const settings = sendSettings(options)
  const endpoints = endpointsOf(options.url)
  const resuming = new Set<string>()

  async function listPage(number: number, { signal }: CallOptions = {}): Promise<Page> {
    return await send(settings, {
      method: 'GET',
      url: endpoints.page(pageNumber(number)),
      headers: acceptJson,
      repeatable: true,
      signal,
      read: jsonReader('a page', readPage),
    })
  }

  async function listPageUnless(
    etag: string | null,
    number: number,
    { signal }: CallOptions = {},
  ): Promise<TaggedPage | null> {
    const read = jsonReader('a page', readPage)
    try {
      return await send(settings, {
        method: 'GET',
        url: endpoints.page(pageNumber(number)),
        headers: etag === null ? acceptJson : { ...acceptJson, 'if-none-match': etag },
        repeatable: true,
        signal,
        read: async (response, timer) => ({
          page: await read(response, timer),
          etag: response.headers.get('etag'),
        }),
      })
    } catch (error) {
      if (etag !== null && error instanceof AnswerError && error.status === 304) return null
      throw error
    }
  }

  function pages({ from = 1, signal }: CrawlOptions = {}): AsyncGenerator<Page, void, undefined> {
    return iteratePages(pageNumber(from), signal)
  }

  async function* iteratePages(
    from: number,
    signal: AbortSignal | undefined,
  ): AsyncGenerator<Page, void, undefined> {
    for (let next: number | null = from; next !== null; ) {
      const page: Page = await listPage(next, { signal })
      yield page
      next = nextPageNumber(page, next, endpoints.listing)
    }
  }

  async function* media(options?: CrawlOptions): AsyncGenerator<string, void, undefined> {
    for await (const page of pages(options)) yield* page.data
  }

  function items(options: ItemOptions = {}): AsyncGenerator<Media, void, undefined> {
    return iterateItems(settings, endpoints, options)
  }

  const search: Client['search'] = (name, options = {}) => items({ ...options, name })

  async function upload(source: UploadSource, options: UploadOptions = {}): Promise<Media> {
    return await uploadMedia({ settings, endpoints, resuming }, source, options)
  }

  async function uploadAll(
    files: readonly FormFile[],
    options: UploadAllOptions = {},
  ): Promise<readonly Media[]> {
    return await uploadForm({ settings, endpoints, resuming }, files, options)
  }

  async function get(idOrUrl: string | URL, options: GetOptions = {}): Promise<Response> {
    return await getBytes(settings, endpoints, idOrUrl, options)
  }

  async function describe(idOrUrl: string | URL, options: DescribeOptions = {}): Promise<Media> {
    return await describeMedia(settings, endpoints, mediaIdOf(idOrUrl), options)
  }

  async function describeWithTag(idOrUrl: string | URL, options: DescribeOptions = {}): Promise<TaggedMedia> {
    return await describeTagged(settings, endpoints, mediaIdOf(idOrUrl), options)
  }

  async function update(
    idOrUrl: string | URL,
    changes: MediaChanges,
    options: UpdateOptions = {},
  ): Promise<Media> {
    return await updateMedia(settings, endpoints, mediaIdOf(idOrUrl), changes, options)
  }

  async function remove(idOrUrl: string | URL, { signal }: CallOptions = {}): Promise<void> {
    let mayBeDeletedByUs = false
    try {
      await send(settings, {
        method: 'DELETE',
        url: endpoints.item(mediaIdOf(idOrUrl)),
        headers: acceptJson,
        repeatable: true,
        signal,
        onUncertain: () => {
          mayBeDeletedByUs = true
        },
        read: async (_response, timer) => timer.close(),
      })
    } catch (error) {
      const isMissing = error instanceof AnswerError && error.status === 404
      if (!isMissing || !mayBeDeletedByUs) throw error
    }
  }

  async function removeMany(
    idsOrUrls: readonly (string | URL)[],
    options: CallOptions = {},
  ): Promise<DeletedItems> {
    return await deleteMany(settings, endpoints, idsOrUrls, options)
  }

  function trash({ signal }: CallOptions = {}): AsyncGenerator<TrashedMedia, void, undefined> {
    return iterateTrash(settings, endpoints, signal)
  }

  async function bucket({ signal }: CallOptions = {}): Promise<Bucket> {
    return await send(settings, {
      method: 'GET',
      url: endpoints.bucket,
      headers: acceptJson,
      repeatable: true,
      signal,
      read: jsonReader('a bucket', readBucket),
    })
  }

  async function whoami({ signal }: CallOptions = {}): Promise<Token> {
    return await send(settings, {
      method: 'GET',
      url: endpoints.token,
      headers: acceptJson,
      repeatable: true,
      signal,
      read: jsonReader('a token', readToken),
    })
  }

  return Object.freeze({
    listPage,
    listPageUnless,
    pages,
    media,
    items,
    search,
    upload,
    uploadAll,
    get,
    describe,
    describeTagged: describeWithTag,
    update,
    delete: remove,
    deleteMany: removeMany,
    trash,
    async restore(idsOrUrls: readonly (string | URL)[], options: CallOptions = {}) {
      return await restoreItems(settings, endpoints, idsOrUrls, options)
    },
    async deleteFromTrash(idsOrUrls: readonly (string | URL)[], options: CallOptions = {}) {
      return await deleteFromTrash(settings, endpoints, idsOrUrls, options)
    },
    async emptyTrash(options: CallOptions = {}) {
      await emptyTrash(settings, endpoints, options)
    },
    async createLink(idOrUrl: string | URL, options: LinkOptions = {}) {
      return await createLink(settings, endpoints, idOrUrl, options)
    },
    async createLinks(idsOrUrls: readonly (string | URL)[], options: LinkOptions = {}) {
      return await createLinks(settings, endpoints, idsOrUrls, options)
    },
    bucket,
    whoami,
    tokens: createTokenManager(settings, endpoints),
  })
}

function pageNumber(number: number): number {
  if (Number.isSafeInteger(number) && number >= 1) return number
  throw new TypeError('the number of a page must be a whole number from 1 to 2^53 - 1')
}
