import { ShapeError } from './errors/shape-error.ts'
import { parseUrl } from './http-url.ts'
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
