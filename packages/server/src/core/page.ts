import { mediaUrl } from './media-url.ts'
import {
  type Link,
  listingUrl,
  nextUrl,
  type PageSettings,
  pageLinks,
  pageUrl,
  previousUrl,
} from './page-links.ts'

export type { PageSettings } from './page-links.ts'

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
