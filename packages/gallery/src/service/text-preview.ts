import type { Media } from '@mediabucket/client'
import type { FileAccess } from './file-access.ts'
import type { Addressed } from './urls.ts'

/** Whether the viewer shows files of a content type as text. HTML and SVG are not shown as text. */
export const isShownAsText = (contentType: string): boolean =>
  /^(?:text\/(?:plain|markdown|csv)|application\/json)(?:;|$)/i.test(contentType)

/** Whether tiles show the first lines of files of a content type: texts and code, except HTML. */
export const hasExcerpt = (contentType: string): boolean =>
  /^(?:text\/(?!html)|application\/(?:(?:[\w.-]+\+)?(?:json|xml|yaml)|javascript|sql|toml|x-sh|x-yaml)(?:;|$))/i.test(
    contentType,
  )

/** The beginning of a text, as it was stored. */
export interface TextStart {
  readonly bytes: ArrayBuffer
  /** Whether more follows. */
  readonly cut: boolean
  /** The declared one. */
  readonly charset: string
}

/** Loads the first `maxBytes` of an item's text. Rejects if they cannot be loaded. */
export async function loadText(
  files: Pick<FileAccess, 'bytes'>,
  media: Addressed & Pick<Media, 'size'>,
  maxBytes: number,
  signal: AbortSignal,
): Promise<TextStart> {
  const { size } = media
  // An empty file satisfies no byte range (RFC 9110, section 14.1.1).
  if (size === 0) return { bytes: new ArrayBuffer(0), cut: false, charset: 'utf-8' }
  const response = await files.bytes(media, { firstBytes: maxBytes, signal })
  const [, charset = 'utf-8'] =
    /;\s*charset\s*=\s*"?([^\s";]+)/i.exec(response.headers.get('content-type') ?? '') ?? []
  return { bytes: await response.arrayBuffer(), cut: size > maxBytes, charset }
}

const byteOrderMarks = [
  { mark: [0xef, 0xbb, 0xbf], label: 'utf-8' },
  { mark: [0xff, 0xfe], label: 'utf-16le' },
  { mark: [0xfe, 0xff], label: 'utf-16be' },
] as const

/**
 * Decodes the charset of a byte order mark, or else the declared one; an incomplete last character of a cut text is ignored. A text that does
 * not have it is read as UTF-8, or else as Windows-1252.
 */
export function decode({ bytes, cut, charset }: TextStart): string {
  const start = new Uint8Array(bytes)
  const marked = byteOrderMarks.find(({ mark }) => mark.every((byte, at) => start[at] === byte))
  if (marked) return new TextDecoder(marked.label).decode(bytes, { stream: cut })
  for (const label of [charset, 'utf-8'])
    try {
      return new TextDecoder(label, { fatal: true }).decode(bytes, { stream: cut })
    } catch {
      // The browser does not know the charset, or the text does not have it.
    }
  return new TextDecoder('windows-1252').decode(bytes)
}
