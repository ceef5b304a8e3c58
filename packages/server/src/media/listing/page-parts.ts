import { type Page, type PageSettings, pageObject, pageSize } from '../../core/page.ts'
import { pageUrl } from '../../core/page-links.ts'
import { compressedChunkPages } from './page-link-cache.ts'

/** ASCII text of this page, or the links to pages `from` to `to`, each with a comma, which all pages share. */
export type PagePart = string | { readonly from: number; readonly to: number }

/**
 * The parts of a page, which together equal the output of JSON.stringify. The cost does not depend on the number of
 * pages: the page-link cache supplies every link except the active one.
 */
export function pageParts(
  settings: { readonly form: PageSettings; readonly envelope: 'bare' | 'wrapped' },
  page: number,
  total: number,
  items: Parameters<typeof pageObject>[3],
): readonly PagePart[] {
  const { form, envelope } = settings
  const write = (value: Page) => JSON.stringify(envelope === 'wrapped' ? { data: value } : value)
  const lastPage = Math.max(1, Math.ceil(total / pageSize))
  if (form.links === 'window' || lastPage <= compressedChunkPages) {
    return [write(pageObject(form, page, total, items))]
  }

  // Without the numbered links, only the previous and the next link remain. The page is split between them.
  const shell = pageObject({ ...form, links: 'none' }, page, total, items)
  const text = write(shell)
  const next = text.lastIndexOf(JSON.stringify(shell.links.at(-1)))
  const [head, tail] = [text.slice(0, next), text.slice(next)]
  if (page > lastPage) return [head, { from: 1, to: lastPage }, tail]
  const active = { url: pageUrl(form, page), label: `${page}`, active: true }
  return [
    head,
    { from: 1, to: page - 1 },
    `${JSON.stringify(active)},`,
    { from: page + 1, to: lastPage },
    tail,
  ]
}
