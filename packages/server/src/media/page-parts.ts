import { type Page, type PageForm, pageObject, pageSize } from '../core/page.ts'
import { pageUrl } from '../core/page-links.ts'
import { blockPages, type LinkRibbon } from './link-ribbon.ts'

/** A run of bytes of its own, or the number of a whole block of the ribbon. */
export type PagePart = Buffer | number

type Items = Parameters<typeof pageObject>[3]

/**
 * The bytes of a page, as JSON.stringify would write it. A bucket of many pages costs no more than one of few: all
 * links but the active one and the ragged ends come from the ribbon.
 */
export function pageParts(
  settings: { readonly form: PageForm; readonly envelope: 'bare' | 'wrapped'; readonly ribbon: LinkRibbon },
  page: number,
  total: number,
  items: Items,
): readonly PagePart[] {
  const { form, envelope, ribbon } = settings
  const write = (value: Page) => JSON.stringify(envelope === 'wrapped' ? { data: value } : value)
  const lastPage = Math.max(1, Math.ceil(total / pageSize))
  if (form.links === 'window' || lastPage <= blockPages) {
    return [Buffer.from(write(pageObject(form, page, total, items)))]
  }

  // Written without its numbers, the page is cut between the two links that are left.
  const shell = pageObject({ ...form, links: 'none' }, page, total, items)
  const text = write(shell)
  const next = text.lastIndexOf(JSON.stringify(shell.links.at(-1)))
  return [
    Buffer.from(text.slice(0, next)),
    ...numberLinks(ribbon, form, page, lastPage),
    Buffer.from(text.slice(next)),
  ]
}

/** The links of all pages, each with a comma: whole blocks by number, the active page's block and the last one written out. */
function* numberLinks(ribbon: LinkRibbon, form: PageForm, active: number, last: number): Iterable<PagePart> {
  for (let first = 1; first <= last; first += blockPages) {
    const end = Math.min(first + blockPages - 1, last)
    if (first <= active && active <= end) {
      yield Buffer.concat([
        ribbon.links(first, active - 1),
        Buffer.from(`${JSON.stringify({ url: pageUrl(form, active), label: `${active}`, active: true })},`),
        ribbon.links(active + 1, end),
      ])
    } else if (end - first + 1 < blockPages) {
      yield ribbon.links(first, end)
    } else {
      yield (first - 1) / blockPages
    }
  }
}
