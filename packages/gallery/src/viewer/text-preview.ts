import { bytesUrl } from '../service/urls.ts'

/** Of a longer text only so many bytes are shown. */
export const maxPreviewBytes = 64 * 1024

/** What the viewer shows as text; pages and drawings, which are texts too, are not among them. */
export const isShownAsText = (contentType: string): boolean =>
  /^(?:text\/(?:plain|markdown|csv)|application\/json)(?:;|$)/i.test(contentType)

/** The text at the beginning of an item. Throws when it cannot be had. */
export async function textPreview(id: string, size: number, signal: AbortSignal): Promise<string> {
  // A range of nothing cannot be satisfied (RFC 9110, section 14.1.1).
  if (size === 0) return ''
  const cut = size > maxPreviewBytes
  const answer = await fetch(bytesUrl(id), { headers: { range: `bytes=0-${maxPreviewBytes - 1}` }, signal })
  if (!answer.ok || (cut && answer.status !== 206)) throw new Error(`the text was answered ${answer.status}`)
  return decode(await answer.arrayBuffer(), cut)
}

/** UTF-8, which may end within a character where it was cut; what is none was most often written on Windows. */
export function decode(bytes: ArrayBuffer, cut: boolean): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes, { stream: cut })
  } catch {
    return new TextDecoder('windows-1252').decode(bytes)
  }
}
