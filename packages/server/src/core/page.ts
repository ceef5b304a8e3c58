import { Fault } from './faults.ts'
import { mediaUrl, type UrlSettings } from './item-urls.ts'

/** docs/interface.md L3. */
export const pageSize = 10

/** A page as sent; JSON.stringify writes its members in this order (docs/interface.md L2). */
export interface Page {
  readonly current_page: number
  readonly data: readonly string[]
  readonly first_page_url: string
  readonly from: number | null
  readonly last_page: number
  readonly last_page_url: string
  readonly links: readonly Link[]
  readonly next_page_url: string | null
  readonly path: string
  readonly per_page: number
  readonly prev_page_url: string | null
  readonly to: number | null
  readonly total: number
}

/** Page `page` with its items, of a listing of `total` items (docs/interface.md L2 to L9, L12). */
export function pageObject(
  urls: PageSettings,
  page: number,
  total: number,
  items: readonly { readonly id: string; readonly extension: string | null }[],
): Page {
  const lastPage = Math.max(1, Math.ceil(total / pageSize))
  const from = items.length === 0 ? null : (page - 1) * pageSize + 1
  return {
    current_page: page,
    data: items.map(({ id, extension }) => mediaUrl(urls, id, extension)),
    first_page_url: pageUrl(urls, 1),
    from,
    last_page: lastPage,
    last_page_url: pageUrl(urls, lastPage),
    links: pageLinks(urls, page, lastPage),
    next_page_url: nextUrl(urls, page, lastPage),
    path: listingUrl(urls),
    per_page: pageSize,
    prev_page_url: previousUrl(urls, page),
    to: from === null ? null : from + items.length - 1,
    total,
  }
}

/** The settings that a page depends on. */
export interface PageSettings extends UrlSettings {
  readonly links: 'all' | 'window'
}

/** One entry of a page's `links`, as on the wire. */
export interface Link {
  readonly url: string | null
  readonly label: string
  readonly active: boolean
}

// Equal to Laravel's UrlWindow with onEachSide = 3, for compatibility with its clients.
const onEachSide = 3
const minPagesWithGap = 2 * onEachSide + 8
const edge = onEachSide + 4
const shownAtEdge = edge + onEachSide
const gap = null

/** The listing's URL without a page (docs/interface.md L6). */
export const listingUrl = (urls: UrlSettings): string => `${urls.baseUrl}/api/media`

/** Does not depend on the requested path or on unknown parameters (docs/interface.md L1, L13). */
export const pageUrl = (urls: UrlSettings, page: number): string => `${listingUrl(urls)}?page=${page}`

/** docs/interface.md L6, L12: the number of the requested page minus one, even if that page is past the last one. */
export const previousUrl = (urls: UrlSettings, page: number): string | null =>
  page > 1 ? pageUrl(urls, page - 1) : null

/** docs/interface.md L6, L12. */
export const nextUrl = (urls: UrlSettings, page: number, lastPage: number): string | null =>
  page < lastPage ? pageUrl(urls, page + 1) : null

/** Previous, the page numbers, next (docs/interface.md L7 to L9). O(lastPage), or O(1) with `window`. */
export function pageLinks(urls: PageSettings, page: number, lastPage: number): readonly Link[] {
  const numbers = numbersShown(urls.links, page, lastPage)
  const links: Link[] = [{ url: previousUrl(urls, page), label: '&laquo; Previous', active: false }]
  for (const number of numbers) {
    links.push(
      number === gap
        ? { url: null, label: '...', active: false }
        : { url: pageUrl(urls, number), label: `${number}`, active: number === page },
    )
  }
  links.push({ url: nextUrl(urls, page, lastPage), label: 'Next &raquo;', active: false })
  return links
}

/** The page numbers that a page links to, in order; null for a gap between them (docs/interface.md L7 to L9). */
export const numbersShown = (
  links: PageSettings['links'],
  page: number,
  lastPage: number,
): readonly (number | null)[] => (links === 'window' ? windowed(page, lastPage) : range(1, lastPage))

/** docs/interface.md L9. A page past the last one gets the same links as the last page. */
function windowed(page: number, lastPage: number): readonly (number | typeof gap)[] {
  if (lastPage < minPagesWithGap) return range(1, lastPage)
  const start = range(1, 2)
  const end = range(lastPage - 1, lastPage)
  if (page <= edge) return [...range(1, shownAtEdge), gap, ...end]
  if (page > lastPage - edge) return [...start, gap, ...range(lastPage - shownAtEdge + 1, lastPage)]
  return [...start, gap, ...range(page - onEachSide, page + onEachSide), gap, ...end]
}

function range(from: number, to: number): number[] {
  const numbers: number[] = []
  for (let number = from; number <= to; number += 1) numbers.push(number)
  return numbers
}

const shape = /^[1-9][0-9]{0,15}$/
const accepts = `page accepts one decimal integer from 1 to ${Number.MAX_SAFE_INTEGER}, without sign, leading zero, fraction, exponent or spaces.`

/** The requested page, 1 if absent. A repeated parameter is a list. Throws Fault `page-malformed` (docs/interface.md L11). */
export function parsePageNumber(value: unknown): number {
  if (value === undefined) return 1
  const [text, ...repeated]: readonly unknown[] = Array.isArray(value) ? value : [value]
  const isNumber = typeof text === 'string' && repeated.length === 0 && shape.test(text)
  const page = isNumber ? Number(text) : Number.NaN
  if (!Number.isSafeInteger(page)) {
    throw new Fault('page-malformed', accepts, {
      parameters: [{ parameter: 'page', detail: accepts, minimum: 1, maximum: Number.MAX_SAFE_INTEGER }],
    })
  }
  return page
}

/** The four paths of the listing (docs/interface.md L1). */
export const listingPaths = ['/api/media', '/api/media/', '/v1/media', '/v1/media/'] as const
