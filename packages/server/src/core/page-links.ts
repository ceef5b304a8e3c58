import type { UrlSettings } from './media-url.ts'

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
