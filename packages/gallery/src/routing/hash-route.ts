import { formatChoice, type ListChoice, parseChoice } from './list-choice.ts'

/** The route in a hash such as `#page=3&item=2v8d…` or `#kind=video&name=harbour`. */
export interface Route {
  /** The number of a page; null for the timeline. */
  readonly page: number | null
  /** The id of the open item; null if none is open. */
  readonly item: string | null
  /** What the timeline shows; nothing if there is a page. */
  readonly list?: ListChoice
  /** Whether it is the trash. Then there is no page and no item. */
  readonly trash?: true
  /** Whether the page shows the list of tokens instead of files. */
  readonly tokens?: true
}

/** The hash of the trash. */
export const trashHash = '#trash'

/** The hash of the list of tokens. */
export const tokensHash = '#tokens'

/** An invalid page number is replaced by 1, an invalid item by null. */
export function parseHash(hash: string): Route {
  const fields = new URLSearchParams(hash.replace(/^#/, ''))
  if (hash === trashHash) return { page: null, item: null, trash: true }
  if (hash === tokensHash) return { page: null, item: null, tokens: true }
  const page = fields.get('page')
  const id = fields.get('item') ?? ''
  const item = /^[\w~-]+$/.test(id) ? id : null
  if (page !== null) return { page: pageNumberOf(page) ?? 1, item }
  return { page: null, item, list: parseChoice(fields) }
}

/** Whether a hash contains an invalid page number. */
export function hasInvalidPage(hash: string): boolean {
  const page = new URLSearchParams(hash.replace(/^#/, '')).get('page')
  return page !== null && pageNumberOf(page) === null
}

export function formatHash({ page, item, list, trash, tokens }: Route): string {
  if (trash) return trashHash
  if (tokens) return tokensHash
  const shown = page === null ? formatChoice(list) : `page=${page}`
  return `#${[shown, item === null ? '' : `item=${item}`].filter(Boolean).join('&')}`
}

/** The page number in typed text; null if it is not one. */
export function pageNumberOf(typed: string): number | null {
  const number = /^\s*0*([1-9]\d*)\s*$/.exec(typed)?.[1]
  return number !== undefined && Number.isSafeInteger(Number(number)) ? Number(number) : null
}
