/** The base URL of the server for this page: the directory that the page was loaded from, not the configured base URL. */
export const serviceUrl = (): URL => new URL('.', document.baseURI)

export type Variant = 'thumb' | 'medium'

/** The URL of an item's bytes on the page's own origin. */
export function bytesUrl(id: string, variant?: Variant): string {
  const url = new URL(`media/${encodeURIComponent(id)}`, serviceUrl())
  if (variant) url.searchParams.set('variant', variant)
  return url.href
}

/** The URL of an item's bytes as an attachment: browsers ignore `<a download>` for URLs of other origins. */
export const downloadUrl = (id: string): string => `${bytesUrl(id)}?download`

/** The id in the URL of an item, whose host may differ from the page's; empty if the URL has none. */
export const mediaIdOf = (url: string): string => /\/media\/([^/.?#]+)(?:\.[^/?#]*)?$/.exec(url)?.[1] ?? ''
