import { type Page, type PageSettings, pageObject, pageSize } from '../../core/page.ts'
import { pageUrl } from '../../core/page-links.ts'
import { blockPages } from './page-link-cache.ts'

/** The page's own text, which is ASCII, or the links of pages `from` to `to`, each with a comma, which all pages share. */
export type PagePart = string | { readonly from: number; readonly to: number }

/**
 * The bytes of a page, as JSON.stringify would write it. A bucket of many pages costs no more than one of few: all
 * links but the active one are left to the ribbon.
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
  if (form.links === 'window' || lastPage <= blockPages) {
    return [write(pageObject(form, page, total, items))]
  }

  // Written without its numbers, the page is cut between the two links that are left.
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
