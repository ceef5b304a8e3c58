import { watchedAnswer } from './answer-body.ts'
import { type Bucket, readBucket } from './bucket.ts'
import type { CallOptions } from './call-options.ts'
import { type ClientOptions, sendingOf } from './client-options.ts'
import { describeMedia } from './describe-media.ts'
import { locate } from './endpoints.ts'
import { AnswerError } from './errors/answer-error.ts'
import type { Media } from './media.ts'
import { mediaIdOf, mediaUrlOf } from './media-reference.ts'
import { nextPageNumber, type Page, readPage, type TaggedPage } from './page.ts'
import { acceptJson, jsonReader } from './read-json.ts'
import { send } from './send.ts'
import { readToken, type Token } from './token.ts'
import { type UploadOptions, uploadMedia } from './upload.ts'
import type { UploadSource } from './upload-content.ts'
import { type FormFile, type UploadAllOptions, uploadForm } from './upload-form.ts'

/** What walks over the pages take. */
export interface CrawlOptions extends CallOptions {
  /** The number of the page to begin with. Default: 1. */
  readonly from?: number | undefined
}

/**
 * One bucket of a service. Every call may reject with an `AnswerError` (a `ProblemError` where the service says why),
 * `ConnectionError`, `TimeoutError`, `RedirectError` or `ShapeError`, and with a `TypeError` for wrong arguments.
 */
export interface Client {
  /** The page with this number, from 1. A page past the last one is empty. */
  listPage(number: number, options?: CallOptions): Promise<Page>

  /**
   * The same with its `ETag`; null where that is still `etag`, which costs the service next to nothing (304). For
   * callers that show a page and follow its changes.
   */
  listPageUnless(etag: string | null, number: number, options?: CallOptions): Promise<TaggedPage | null>

  /**
   * The pages from first to last, each fetched when it is asked for, until one has no next page. Uploads during the
   * walk are met at its end. A delete moves every later item forward by one, so the walk misses one item for each that
   * is deleted on a page behind it; it meets none twice. To delete while walking, collect the URLs first.
   */
  pages(options?: CrawlOptions): AsyncGenerator<Page, void, undefined>

  /** The URL of every item, page by page; what holds for `pages` holds for it. */
  media(options?: CrawlOptions): AsyncGenerator<string, void, undefined>

  /** Stores one file and resolves with its media object once the service holds it durably. */
  upload(source: UploadSource, options?: UploadOptions): Promise<Media>

  /**
   * Stores several files with one request, all or none, and resolves with their media objects in the order given. The
   * listing keeps that order.
   */
  uploadAll(files: readonly FormFile[], options?: UploadAllOptions): Promise<readonly Media[]>

  /**
   * The bytes of an item, as a `Response` with a status of 2xx; reading its body rejects when the service goes silent.
   * A URL is fetched as it is: with the token at the client's own origin, without it at any other.
   */
  get(idOrUrl: string | URL, options?: CallOptions): Promise<Response>

  /** The media object of an item. Of a URL it takes the id alone and asks the client's own service. */
  describe(idOrUrl: string | URL, options?: CallOptions): Promise<Media>

  /**
   * Deletes an item. Of a URL it takes the id alone. Rejects with an `AnswerError` of status 404 when there is no such
   * item, unless an earlier try of the same call may have deleted it.
   */
  delete(idOrUrl: string | URL, options?: CallOptions): Promise<void>

  /** What the token's bucket holds and may hold. */
  bucket(options?: CallOptions): Promise<Bucket>

  /** What the client's token is: its bucket, its scopes, when it ends. Every good token may ask. */
  whoami(options?: CallOptions): Promise<Token>
}

/** Makes a client; throws a `TypeError` for options that make no sense. Sends nothing yet. */
export function createClient(options: ClientOptions): Client {
  const sending = sendingOf(options)
  const endpoints = locate(options.url)
  const resuming = new Set<string>()

  async function listPage(number: number, { signal }: CallOptions = {}): Promise<Page> {
    return await send(sending, {
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
      return await send(sending, {
        method: 'GET',
        url: endpoints.page(pageNumber(number)),
        headers: etag === null ? acceptJson : { ...acceptJson, 'if-none-match': etag },
        repeatable: true,
        signal,
        read: async (answer, watch) => ({
          page: await read(answer, watch),
          etag: answer.headers.get('etag'),
        }),
      })
    } catch (error) {
      if (etag !== null && error instanceof AnswerError && error.status === 304) return null
      throw error
    }
  }

  function pages({ from = 1, signal }: CrawlOptions = {}): AsyncGenerator<Page, void, undefined> {
    return walk(pageNumber(from), signal)
  }

  async function* walk(from: number, signal: AbortSignal | undefined): AsyncGenerator<Page, void, undefined> {
    for (let next: number | null = from; next !== null; ) {
      const page: Page = await listPage(next, { signal })
      yield page
      next = nextPageNumber(page, next, endpoints.listing)
    }
  }

  async function* media(options?: CrawlOptions): AsyncGenerator<string, void, undefined> {
    for await (const page of pages(options)) yield* page.data
  }

  async function upload(source: UploadSource, options: UploadOptions = {}): Promise<Media> {
    return await uploadMedia({ sending, endpoints, resuming }, source, options)
  }

  async function uploadAll(
    files: readonly FormFile[],
    options: UploadAllOptions = {},
  ): Promise<readonly Media[]> {
    return await uploadForm({ sending, endpoints, resuming }, files, options)
  }

  async function get(idOrUrl: string | URL, { signal }: CallOptions = {}): Promise<Response> {
    return await send(sending, {
      method: 'GET',
      url: mediaUrlOf(idOrUrl, endpoints.bytes),
      mayLeave: true,
      repeatable: true,
      signal,
      read: async (answer, watch) => watchedAnswer(answer, watch),
    })
  }

  async function describe(idOrUrl: string | URL, { signal }: CallOptions = {}): Promise<Media> {
    return await describeMedia(sending, endpoints, mediaIdOf(idOrUrl), signal)
  }

  async function remove(idOrUrl: string | URL, { signal }: CallOptions = {}): Promise<void> {
    try {
      await send(sending, {
        method: 'DELETE',
        url: endpoints.item(mediaIdOf(idOrUrl)),
        headers: acceptJson,
        repeatable: true,
        signal,
        read: async (_answer, watch) => watch.close(),
      })
    } catch (error) {
      const mayBeOurs = error instanceof AnswerError && error.status === 404 && error.attempts > 1
      if (!mayBeOurs) throw error
    }
  }

  async function bucket({ signal }: CallOptions = {}): Promise<Bucket> {
    return await send(sending, {
      method: 'GET',
      url: endpoints.bucket,
      headers: acceptJson,
      repeatable: true,
      signal,
      read: jsonReader('a bucket', readBucket),
    })
  }

  async function whoami({ signal }: CallOptions = {}): Promise<Token> {
    return await send(sending, {
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
    upload,
    uploadAll,
    get,
    describe,
    delete: remove,
    bucket,
    whoami,
  })
}

function pageNumber(number: number): number {
  if (Number.isSafeInteger(number) && number >= 1) return number
  throw new TypeError('the number of a page is a whole number from 1 to 2^53 - 1')
}
