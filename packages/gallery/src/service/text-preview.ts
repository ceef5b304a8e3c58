import type { Media } from '@mediabucket/client'
import { type Addressed, bytesUrl } from './urls.ts'

/** Whether the viewer shows files of a content type as text. HTML and SVG are not shown as text. */
export const isShownAsText = (contentType: string): boolean =>
  /^(?:text\/(?:plain|markdown|csv)|application\/json)(?:;|$)/i.test(contentType)

/** Whether tiles show the first lines of files of a content type: texts and code, except HTML. */
export const hasExcerpt = (contentType: string): boolean =>
  /^(?:text\/(?!html)|application\/(?:(?:[\w.-]+\+)?(?:json|xml|yaml)|javascript|sql|toml|x-sh|x-yaml)(?:;|$))/i.test(
    contentType,
  )

/** The first `maxBytes` of an item's text. Rejects if they cannot be loaded. */
export async function textPreview(
  media: Addressed & Pick<Media, 'size'>,
  maxBytes: number,
  signal: AbortSignal,
): Promise<string> {
  const { size } = media
  // An empty file satisfies no byte range (RFC 9110, section 14.1.1).
  if (size === 0) return ''
  const cut = size > maxBytes
  const response = await fetch(bytesUrl(media), { headers: { range: `bytes=0-${maxBytes - 1}` }, signal })
  if (!response.ok || (cut && response.status !== 206))
    throw new Error(`The server responded with ${response.status}`)
  return decode(await response.arrayBuffer(), cut)
}

/** Decodes UTF-8, ignoring an incomplete last character of a cut text; other texts are read as Windows-1252. */
export function decode(bytes: ArrayBuffer, cut: boolean): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes, { stream: cut })
  } catch {
    return new TextDecoder('windows-1252').decode(bytes)
  }
}
