import type { PictureTool } from './picture-tools.ts'
import type { VariantSize } from './variant.ts'

/** The settings that a URL depends on. `baseUrl` has no trailing slash. */
export interface UrlSettings {
  readonly baseUrl: string
  readonly extensions: boolean
  /** The start of the URLs of bytes, if it is not `baseUrl`. No trailing slash. */
  readonly mediaBaseUrl?: string
  /** The sizes of variants; the built-in ones if absent. */
  readonly variants?: readonly VariantSize[]
  /** The programs that make pictures of further types; none if absent. */
  readonly tools?: ReadonlySet<PictureTool>
}

/** The absolute URL of an item's bytes; `extension` has no dot (docs/interface.md L14). */
export function mediaUrl(urls: UrlSettings, id: string, extension: string | null): string {
  const suffix = urls.extensions && extension !== null ? `.${extension}` : ''
  return `${urls.mediaBaseUrl ?? urls.baseUrl}/media/${id}${suffix}`
}
