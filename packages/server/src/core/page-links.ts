import type { UrlSettings } from './media-url.ts'

/** What of the settings shapes a page. */
export interface PageSettings extends UrlSettings {
  /** `none` leaves the numbers out, for whoever adds them as bytes. */
  readonly links: 'all' | 'window' | 'none'
}

/** One entry of a page's `links`, as on the wire. */
export interface Link {
  readonly url: string | null
  readonly label: string
  readonly active: boolean
}

// The numbers of Laravel's UrlWindow with onEachSide = 3, so that its clients see what they are used to.
const onEachSide = 3
const fewestPagesElided = 2 * onEachSide + 8
const edge = onEachSide + 4
const shownAtEdge = edge + onEachSide
const gap = null

/** The listing's URL without a page (docs/interface.md L6). */
export const listingUrl = (form: UrlSettings): string => `${form.baseUrl}/api/media`

/** The same for whichever path was asked, unknown parameters dropped (docs/interface.md L1, L13). */
export const pageUrl = (form: UrlSettings, page: number): string => `${listingUrl(form)}?page=${page}`

/** docs/interface.md L6, L12: also past the end, the page before the one asked for. */
export const previousUrl = (form: UrlSettings, page: number): string | null =>
  page > 1 ? pageUrl(form, page - 1) : null

/** docs/interface.md L6, L12. */
export const nextUrl = (form: UrlSettings, page: number, lastPage: number): string | null =>
  page < lastPage ? pageUrl(form, page + 1) : null

/** Previous, the page numbers, next (docs/interface.md L7 to L9). O(lastPage) unless they are windowed. */
export function pageLinks(form: PageSettings, page: number, lastPage: number): readonly Link[] {
  const numbers = numbersShown(form.links, page, lastPage)
  const links: Link[] = [{ url: previousUrl(form, page), label: '&laquo; Previous', active: false }]
  for (const number of numbers) {
    links.push(
      number === gap
        ? { url: null, label: '...', active: false }
        : { url: pageUrl(form, number), label: `${number}`, active: number === page },
    )
  }
  links.push({ url: nextUrl(form, page, lastPage), label: 'Next &raquo;', active: false })
  return links
}

function numbersShown(links: PageSettings['links'], page: number, lastPage: number) {
  if (links === 'none') return []
  return links === 'window' ? windowed(page, lastPage) : range(1, lastPage)
}

/** docs/interface.md L9; a page past the end is taken for one at the end. */
function windowed(page: number, lastPage: number): readonly (number | typeof gap)[] {
  if (lastPage < fewestPagesElided) return range(1, lastPage)
  const start = range(1, 2)
  const end = range(lastPage - 1, lastPage)
  if (page <= edge) return [...range(1, shownAtEdge), gap, ...end]
  if (page > lastPage - edge) return [...start, gap, ...range(lastPage - shownAtEdge + 1, lastPage)]
  return [...start, gap, ...range(page - onEachSide, page + onEachSide), gap, ...end]
}

const range = (from: number, to: number): number[] =>
  Array.from({ length: to - from + 1 }, (_, index) => from + index)
