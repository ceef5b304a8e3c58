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

/** One entry of a page's `links`: previous, one for each number or a gap (`...`), next. */
export interface PageLink {
  /** Null when there is no such page, and for a gap. */
  readonly url: string | null
  /** As on the wire; the outer two hold HTML entities (`&laquo; Previous`). */
  readonly label: string
  /** True for the number of this page alone. */
  readonly active: boolean
  /** The number of the page linked to; only some services send it. */
  readonly page?: number | null | undefined
}

/** One page of the listing, as on the wire and without envelope. */
export interface Page {
  readonly current_page: number
  /** URLs of media, at most `per_page`. */
  readonly data: readonly string[]
  readonly first_page_url: string
  /** Position of the first item in the whole listing, from 1; null when the page is empty. */
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
  /** Position of the last item in the whole listing; null when the page is empty. */
  readonly to: number | null
  /** Items in the whole listing. */
  readonly total: number
}

/** A page with what tells it from an earlier or later state of itself. */
export interface TaggedPage {
  readonly page: Page
  /** Null where the service sends none. */
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

/** The page in an answer, bare or wrapped in `data`; throws a `ShapeError` whose path begins at the page. */
export function readPage(answer: unknown): Page {
  const wrapped = isObject(answer) && isObject(answer['data']) && !('current_page' in answer)
  return parse(what, pageShape, wrapped ? answer['data'] : answer)
}

/**
 * The number of the page after this one, null on the last. Of the link it takes the number alone: the host in it may
 * be another than the one that was asked. Throws a `ShapeError` when the link leads nowhere or not onward.
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
