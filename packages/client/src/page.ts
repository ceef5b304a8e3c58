import type { CallOptions } from './client-options.ts'
import { AnswerError, ShapeError } from './errors.ts'
import { sendJson, sendTagged } from './json.ts'
import type { SendSettings } from './send.ts'
import {
  arrayOf,
  type Check,
  count,
  countOrNull,
  flag,
  isObject,
  objectOf,
  optional,
  parse,
  position,
  text,
  textOrNull,
} from './shape.ts'
import { type Endpoints, parseUrl } from './urls.ts'

/** One entry of a page's `links`: the previous page, a page number or a gap (`...`), the next page. */
export interface PageLink {
  /** Null if there is no such page, and for a gap. */
  readonly url: string | null
  /** As on the wire; the first and the last contain HTML entities (`&laquo; Previous`). */
  readonly label: string
  /** True only for the number of this page. */
  readonly active: boolean
  /** The number of the linked page; only some services send it. */
  readonly page?: number | null | undefined
}

/** One page of the listing, as on the wire without its envelope. */
export interface Page {
  readonly current_page: number
  /** URLs of media, at most `per_page`. */
  readonly data: readonly string[]
  readonly first_page_url: string
  /** Position of the first item in the whole listing, from 1; null if the page is empty. */
  readonly from: number | null
  readonly last_page: number
  readonly last_page_url: string
  readonly links: readonly PageLink[]
  /** Null on the last page and after it. */
  readonly next_page_url: string | null
  readonly path: string
  readonly per_page: number
  /** Null on the first page. */
  readonly prev_page_url: string | null
  /** Position of the last item in the whole listing; null if the page is empty. */
  readonly to: number | null
  /** Items in the whole listing. */
  readonly total: number
}

/** The options of an iteration over pages. */
export interface CrawlOptions extends CallOptions {
  /** The number of the first page. Default: 1. */
  readonly from?: number | undefined
}

/** A page with its ETag. */
export interface TaggedPage {
  readonly page: Page
  /** Null if the service sends none. */
  readonly etag: string | null
}

const what = 'a page'

const pageShape: Check<Page> = objectOf<Page>({
  current_page: position,
  data: arrayOf(text),
  first_page_url: text,
  from: countOrNull,
  last_page: position,
  last_page_url: text,
  links: arrayOf(
    objectOf<PageLink>({ url: textOrNull, label: text, active: flag, page: optional(countOrNull) }),
  ),
  next_page_url: textOrNull,
  path: text,
  per_page: position,
  prev_page_url: textOrNull,
  to: countOrNull,
  total: count,
})

/** Reads the page from a response, bare or wrapped in `data`. Throws a `ShapeError`, whose path begins at the page. */
export function readPage(response: unknown): Page {
  const wrapped = isObject(response) && isObject(response['data']) && !('current_page' in response)
  return parse(what, pageShape, wrapped ? response['data'] : response)
}

/** The page with this number. */
export const fetchPage = (
  settings: SendSettings,
  endpoints: Endpoints,
  number: number,
  { signal }: CallOptions,
): Promise<Page> =>
  sendJson(settings, { url: endpoints.page(pageNumber(number)), signal, what, read: readPage })

/** The page with its `ETag`; null if it still has the ETag `etag`. */
export async function fetchPageUnless(
  settings: SendSettings,
  endpoints: Endpoints,
  etag: string | null,
  number: number,
  { signal }: CallOptions,
): Promise<TaggedPage | null> {
  const headers = etag === null ? {} : { 'if-none-match': etag }
  const url = endpoints.page(pageNumber(number))
  try {
    const tagged = await sendTagged(settings, { url, headers, signal, what, read: readPage })
    return { page: tagged.value, etag: tagged.etag }
  } catch (error) {
    if (etag !== null && error instanceof AnswerError && error.status === 304) return null
    throw error
  }
}

/** Iterates over the pages from a number on, until a page has no next one. */
export function iteratePages(
  settings: SendSettings,
  endpoints: Endpoints,
  { from = 1, signal }: CrawlOptions,
): AsyncGenerator<Page, void, undefined> {
  return followPages(pageNumber(from), endpoints.listing, (number) =>
    fetchPage(settings, endpoints, number, { signal }),
  )
}

async function* followPages(
  from: number,
  listing: string,
  fetchNext: (number: number) => Promise<Page>,
): AsyncGenerator<Page, void, undefined> {
  for (let next: number | null = from; next !== null; ) {
    const page: Page = await fetchNext(next)
    yield page
    next = nextPageNumber(page, next, listing)
  }
}

function pageNumber(number: number): number {
  if (Number.isSafeInteger(number) && number >= 1) return number
  throw new TypeError('the number of a page must be a whole number from 1 to 2^53 - 1')
}

/**
 * The number of the next page; null on the last page. Only the number of the link is used, because its host may differ
 * from the host of the request. Throws a `ShapeError` if the link has no page number, or not a later one.
 */
export function nextPageNumber(page: Page, number: number, listing: string): number | null {
  if (page.next_page_url === null) return null
  const link = parseUrl(page.next_page_url, listing)
  const next = Number(/^[1-9]\d*$/.exec(link?.searchParams.get('page') ?? '')?.[0])
  if (Number.isSafeInteger(next) && next > number) return next
  throw new ShapeError(
    what,
    'next_page_url',
    `must lead to a page after ${number}, and is ${JSON.stringify(page.next_page_url)}`,
  )
}
