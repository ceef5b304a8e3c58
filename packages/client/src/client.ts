import type { Bucket } from './bucket.ts'
import type { Change, ChangesOptions } from './changes.ts'
import type { CallOptions, GetOptions } from './client-options.ts'
import type { ItemOptions, ItemPage, ItemPageOptions } from './item-list.ts'
import type { LabelKey, LabelOptions } from './labels.ts'
import type { Link, LinkOptions, Links } from './links.ts'
import type {
  DeletedItems,
  DeleteOptions,
  DescribeOptions,
  LabelledItems,
  Media,
  MediaChanges,
  TaggedMedia,
  UpdateOptions,
} from './media.ts'
import type { CrawlOptions, Page, TaggedPage } from './page.ts'
import type { Token, TokenManager } from './tokens.ts'
import type { RestoredItems, TrashedMedia } from './trash.ts'
import type { FormFile, UploadAllOptions, UploadOptions } from './upload.ts'
import type { UploadSource } from './upload-content.ts'
import type { UrlUploadOptions } from './url-upload.ts'
import type { WebhookManager } from './webhooks.ts'

/**
 * One bucket of a service. Every call may reject with an `AnswerError` (a `ProblemError` if the service gives a reason),
 * `ConnectionError`, `TimeoutError`, `RedirectError` or `ShapeError`, and with a `TypeError` for wrong arguments.
 */
export interface Client {
  /** Returns the page with this number, from 1. A page after the last one is empty. */
  listPage(number: number, options?: CallOptions): Promise<Page>

  /**
   * Returns the page with its `ETag`, or null if the page still has the ETag `etag` (304). Use it to poll a page for
   * changes.
   */
  listPageUnless(etag: string | null, number: number, options?: CallOptions): Promise<TaggedPage | null>

  /**
   * Iterates over the pages until a page has no next page. Each page is fetched when it is needed. Items that are
   * uploaded during the iteration appear at its end. A delete moves every later item forward by one, so the iteration
   * misses one item for each item that is deleted on an earlier page; no item appears twice. To delete what an iteration
   * returns, collect the URLs first.
   */
  pages(options?: CrawlOptions): AsyncGenerator<Page, void, undefined>

  /** Iterates over the URLs of all items, page by page, with the guarantees of `pages`. */
  media(options?: CrawlOptions): AsyncGenerator<string, void, undefined>

  /**
   * Iterates over the media objects of the bucket, or of the selected items. Every item that exists during the whole iteration
   * is returned exactly once, whatever is uploaded and deleted in the meantime. The service must have `/api/items`.
   */
  items(options?: ItemOptions): AsyncGenerator<Media, void, undefined>

  /** Returns one response of the list that `items` iterates over, from the cursor `after` on. */
  itemPage(options?: ItemPageOptions): Promise<ItemPage>

  /** Calls `items` with the option `name`. */
  search(name: string, options?: Omit<ItemOptions, 'name'>): AsyncGenerator<Media, void, undefined>

  /**
   * Iterates over what happens to the items of the bucket: each change once, in order, as soon as it can be read. It does not end, and goes on
   * when the service was away. Rejects with a `ProblemError` with the code `cursor-expired` if the service no longer has the changes
   * after the cursor: then get the `latestCursor`, list the items again, and continue.
   */
  changes(options?: ChangesOptions): AsyncGenerator<Change, void, undefined>

  /** Returns the cursor of this moment. What `items` lists after it, and `changes` after it, is complete. */
  latestCursor(options?: CallOptions): Promise<string>

  /** Returns the keys of the labels of the items in the bucket, up to 100, with their most frequent values. */
  labels(options?: LabelOptions): Promise<readonly LabelKey[]>

  /** Stores one file. Resolves with its media object when the service has stored it durably. */
  upload(source: UploadSource, options?: UploadOptions): Promise<Media>

  /**
   * Stores several files with one request, all or none. Resolves with their media objects in the order of `files`, which
   * is also their order in the listing.
   */
  uploadAll(files: readonly FormFile[], options?: UploadAllOptions): Promise<readonly Media[]>

  /**
   * Has the service request a file from another server and store it, if its operator allows that. The bytes do not pass through the caller. Rejects
   * with a `ProblemError` with the code `source-failed`, `source-refused` or `source-timeout` if the other server does not send the file.
   */
  uploadFromUrl(url: string | URL, options?: UrlUploadOptions): Promise<Media>

  /**
   * Ends an unfinished resumable upload, whose id a `ResumeStore` has, so that its space is free at once. Resolves if there is no such
   * upload. If the upload is finished, its item is deleted, which requires `media:delete`.
   */
  deleteUpload(id: string, options?: CallOptions): Promise<void>

  /**
   * Fetches the bytes of an item: a `Response` with a status of 2xx. Reading its body rejects on a timeout. A URL is
   * fetched unchanged: with the token if it has the client's origin, without it otherwise. If the bytes are at another
   * origin that requires a signed URL, the client creates one.
   */
  get(idOrUrl: string | URL, options?: GetOptions): Promise<Response>

  /** Returns the media object of an item. Only the id of a URL is used; the request goes to the client's service. */
  describe(idOrUrl: string | URL, options?: DescribeOptions): Promise<Media>

  /** As `describe`, with the `ETag` of the media object for `update`. */
  describeTagged(idOrUrl: string | URL, options?: DescribeOptions): Promise<TaggedMedia>

  /**
   * Changes members of an item, and returns its media object. With `ifMatch`, rejects with an `AnswerError` of status 412 if the item has
   * changed since the response with this `ETag`.
   */
  update(idOrUrl: string | URL, changes: MediaChanges, options?: UpdateOptions): Promise<Media>

  /**
   * Changes labels of many items, in one transaction for each 500: null removes a label, others stay. Resolves with the given ids and URLs in
   * two lists, as `deleteMany`. Rejects if an item would have more than 16 labels; then none of its 500 is changed.
   */
  labelMany(
    idsOrUrls: readonly (string | URL)[],
    labels: Readonly<Record<string, string | null>>,
    options?: CallOptions,
  ): Promise<LabelledItems>

  /**
   * Deletes an item. Only the id of a URL is used. Rejects with an `AnswerError` of status 404 if there is no such item,
   * unless an earlier attempt of the same call may have deleted it.
   */
  delete(idOrUrl: string | URL, options?: CallOptions): Promise<void>

  /**
   * Deletes many items, in one transaction for each 500. Resolves with the given ids and URLs in two lists: the deleted items, and the
   * items that the bucket does not have. If a request is retried because it received no response, all its items count as deleted,
   * because the earlier attempt may have deleted them.
   */
  deleteMany(idsOrUrls: readonly (string | URL)[], options?: DeleteOptions): Promise<DeletedItems>

  /** Iterates over the deleted items that can be restored, last deleted first. */
  trash(options?: CallOptions): AsyncGenerator<TrashedMedia, void, undefined>

  /** Restores deleted items, in one transaction for each 500. If a request is retried, all its items count as restored, as in `deleteMany`. */
  restore(idsOrUrls: readonly (string | URL)[], options?: CallOptions): Promise<RestoredItems>

  /** Deletes items of the trash permanently, as `deleteMany`. */
  deleteFromTrash(idsOrUrls: readonly (string | URL)[], options?: CallOptions): Promise<DeletedItems>

  /** Deletes all items in the trash permanently. */
  emptyTrash(options?: CallOptions): Promise<void>

  /**
   * Creates a link of an item that expires: a signed URL, which needs no token. Only the id of a URL is used. The token needs
   * `media:read`. A client that has the URL can use it until it expires.
   */
  createLink(idOrUrl: string | URL, options?: LinkOptions): Promise<Link>

  /** Creates links of many items, with one request for each 500. */
  createLinks(idsOrUrls: readonly (string | URL)[], options?: LinkOptions): Promise<Links>

  /** Returns the contents and the quotas of the token's bucket. */
  bucket(options?: CallOptions): Promise<Bucket>

  /** Returns the bucket, the scopes and the expiry of the client's token. It needs no scope. */
  whoami(options?: CallOptions): Promise<Token>

  /** Manages the tokens of the bucket, with a token that has the scope `tokens:manage`. */
  readonly tokens: TokenManager

  /** Manages the webhooks of the bucket, with a token that has the scope `webhooks:manage`. */
  readonly webhooks: WebhookManager
}
