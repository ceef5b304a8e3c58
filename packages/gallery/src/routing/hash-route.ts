/** What a hash such as `#page=3&item=2v8d…` asks for. */
export interface Route {
  readonly page: number
  /** The id of the item that is open. */
  readonly item: string | null
}

/** Whatever is no page number leads to page 1. */
export function parseHash(hash: string): Route {
  const fields = new URLSearchParams(hash.replace(/^#/, ''))
  const page = pageNumberOf(fields.get('page') ?? '')
  const item = fields.get('item') ?? ''
  return { page: page ?? 1, item: /^[\w~-]+$/.test(item) ? item : null }
}

/** Whether a hash names a page that cannot be one. */
export function hasWrongPage(hash: string): boolean {
  const page = new URLSearchParams(hash.replace(/^#/, '')).get('page')
  return page !== null && pageNumberOf(page) === null
}

export const formatHash = ({ page, item }: Route): string =>
  item === null ? `#page=${page}` : `#page=${page}&item=${item}`

/** The number that people typed, null when it is no page number. */
export function pageNumberOf(typed: string): number | null {
  const number = /^\s*0*([1-9]\d*)\s*$/.exec(typed)?.[1]
  return number !== undefined && Number.isSafeInteger(Number(number)) ? Number(number) : null
}
