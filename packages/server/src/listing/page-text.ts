import { type LinkSigner, mediaUrl } from '../core/item-urls.ts'
import {
  listingUrl,
  nextUrl,
  numbersShown,
  type PageSettings,
  pageSize,
  pageUrl,
  previousUrl,
} from '../core/page.ts'
import { compressedChunkPages } from './page-link-cache.ts'

/** ASCII text of this page, or the links to pages `from` to `to`, each with a comma, which all pages share. */
export type PagePart = string | { readonly from: number; readonly to: number }

export type PageRenderer = (
  page: number,
  total: number,
  items: readonly { readonly id: string; readonly extension: string | null }[],
  signer?: LinkSigner | null,
) => readonly PagePart[]

/**
 * Renders pages as text, in parts that together equal JSON.stringify of `pageObject` (core/page.ts), the plain form; a test compares them.
 * The bench case is `cold-1000` of `listing`. The number of parts does not depend on the number of pages: the page-link cache supplies the
 * links of a large bucket.
 */
export function createPageRenderer(settings: {
  readonly urls: PageSettings
  readonly envelope: 'bare' | 'wrapped'
}): PageRenderer {
  const { urls, envelope } = settings
  const [open, close] = envelope === 'wrapped' ? ['{"data":{', '}}'] : ['{', '}']
  const path = JSON.stringify(listingUrl(urls))
  /** The URL of a page without its number and the closing quote. */
  const url = JSON.stringify(pageUrl(urls, 0)).slice(0, -2)
  /** The URL of an item without its id and the closing quote. */
  const urlStart = JSON.stringify(mediaUrl(urls, '', null)).slice(0, -1)

  const linkStart = `{"url":${url}`
  const activeEnd = '","active":true},'
  const inactiveEnd = '","active":false},'
  function numberLink(page: number, isActive: boolean): string {
    const number = `${page}`
    return `${linkStart}${number}","label":"${number}${isActive ? activeEnd : inactiveEnd}`
  }
  const gapLink = '{"url":null,"label":"...","active":false},'

  /** The links to page numbers, each with a comma. */
  function numberLinks(page: number, lastPage: number): string {
    let text = ''
    for (const number of numbersShown(urls.links, page, lastPage))
      text += number === null ? gapLink : numberLink(number, number === page)
    return text
  }

  /** The array of URLs. Ids and the extensions of types have no characters that JSON escapes. */
  function plainUrls(items: Parameters<PageRenderer>[2]): string {
    if (items.length === 0) return '[]'
    const names = items.map(({ id, extension }) =>
      urls.extensions && extension !== null ? `${id}.${extension}` : id,
    )
    return `[${urlStart}${names.join(`",${urlStart}`)}"]`
  }

  return (page, total, items, signer = null) => {
    const lastPage = Math.max(1, Math.ceil(total / pageSize))
    const from = items.length === 0 ? null : (page - 1) * pageSize + 1
    const to = from === null ? null : from + items.length - 1
    const previous = JSON.stringify(previousUrl(urls, page))
    const next = JSON.stringify(nextUrl(urls, page, lastPage))
    const data = signer === null ? plainUrls(items) : JSON.stringify(items.map((item) => signer.sign(item)))
    const head =
      `${open}"current_page":${page},"data":${data},"first_page_url":${url}1","from":${from},` +
      `"last_page":${lastPage},"last_page_url":${url}${lastPage}",` +
      `"links":[{"url":${previous},"label":"&laquo; Previous","active":false},`
    const tail =
      `{"url":${next},"label":"Next &raquo;","active":false}],"next_page_url":${next},"path":${path},` +
      `"per_page":${pageSize},"prev_page_url":${previous},"to":${to},"total":${total}${close}`

    if (urls.links === 'window' || lastPage <= compressedChunkPages)
      return [head + numberLinks(page, lastPage) + tail]
    if (page > lastPage) return [head, { from: 1, to: lastPage }, tail]
    return [head, { from: 1, to: page - 1 }, numberLink(page, true), { from: page + 1, to: lastPage }, tail]
  }
}
