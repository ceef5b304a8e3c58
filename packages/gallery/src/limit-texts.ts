import type { Token } from '@mediabucket/client'
import { formatSize, formatTime } from './format.ts'
import { strings } from './strings.ts'

/** Types such as `image/*` and `application/pdf` in words. */
export function kindsText(types: readonly string[]): string {
  const { links } = strings
  const names = types.map((type) => {
    const [kind = '', subtype = ''] = type.split('/')
    return subtype === '*' ? (links.kinds[kind] ?? type) : subtype.replace(/^x-|\+.*$/g, '').toUpperCase()
  })
  return [...new Set(names)].join(', ')
}

/** The limits of a token in words, one text for each. */
export function limitTexts({
  limits,
  left,
  expires_at,
}: Pick<Token, 'limits' | 'left' | 'expires_at'>): string[] {
  const { links } = strings
  const texts: string[] = []
  if (limits !== null) {
    const { max_items, max_bytes, max_file_size, types, item_days } = limits
    const items = left?.items ?? null
    if (types !== null) texts.push(links.onlyKinds(kindsText(types)))
    if (max_items !== null)
      texts.push(items === null || items === max_items ? links.upTo(max_items) : links.left(items, max_items))
    if (max_file_size !== null) texts.push(links.each(formatSize(max_file_size)))
    if (max_bytes !== null) texts.push(links.total(formatSize(left?.bytes ?? max_bytes)))
    if (item_days !== null) texts.push(links.expireAfter(item_days))
  }
  if (expires_at !== null) texts.push(links.until(formatTime(expires_at)))
  return texts
}
