import type { Token } from '@mediabucket/client'
import { formatSize, formatTime } from './format.ts'
import { strings } from './strings.ts'

/** Types such as `image/*` and `application/pdf` in words. */
export function kindsText(types: readonly string[]): string {
  const { links } = strings
  const names = types.map((type) => {
    const [kind = '', subtype = ''] = type.split('/')
    if (type === 'text/plain') return 'TXT'
    return subtype === '*' ? (links.kinds[kind] ?? type) : subtype.replace(/^x-|\+.*$/g, '').toUpperCase()
  })
  return [...new Set(names)].join(', ')
}

/** Kinds that a browser, which knows a file by its name only, and the server may tell apart differently. */
const familyOf = (type: string): string => {
  const kind = type.split('/')[0] ?? ''
  return kind === 'audio' ? 'video' : kind === 'text' ? 'application' : kind
}

/** Whether the type that the browser states is so different from these that the server refuses the file. */
const isOtherKind = (type: string, types: readonly string[]): boolean =>
  type.includes('/') &&
  type !== 'application/octet-stream' &&
  types.every((permitted) => familyOf(permitted) !== familyOf(type))

/**
 * Why the server is certain to refuse a file, in words; null if it may accept it. `ahead`: the files and bytes that are sent before it and that
 * `left` still has.
 */
export function refusalByLimits(
  { limits, left }: Pick<Token, 'limits' | 'left'>,
  { size, type }: { readonly size: number; readonly type: string },
  ahead: { readonly items: number; readonly bytes: number },
): string | null {
  const { links } = strings
  if (limits === null) return null
  const { max_file_size, types } = limits
  if (types !== null && isOtherKind(type, types)) return links.wrongType(kindsText(types))
  if (max_file_size !== null && size > max_file_size) return links.tooLarge(formatSize(max_file_size))
  const [items, bytes] = [left?.items ?? null, left?.bytes ?? null]
  if (items !== null && ahead.items >= items) return links.noneLeft
  return bytes !== null && ahead.bytes + size > bytes ? links.tooMuch : null
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
    const bytes = left?.bytes ?? null
    if (max_bytes !== null)
      texts.push(
        bytes === null || bytes === max_bytes
          ? links.total(formatSize(max_bytes))
          : links.leftOfTotal(formatSize(bytes), formatSize(max_bytes)),
      )
    if (item_days !== null) texts.push(links.expireAfter(item_days))
  }
  if (expires_at !== null) texts.push(links.until(formatTime(expires_at)))
  return texts
}
