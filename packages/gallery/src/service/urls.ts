/** Where the service is for this page: the directory that the page was loaded from, whatever its base URL says. */
export const serviceUrl = (): URL => new URL('.', document.baseURI)

export type Variant = 'thumb' | 'medium'

/** Saves the bytes of an item. The query asks for an attachment: `<a download>` alone is ignored across origins. */
export const downloadUrl = (id: string): string => `${bytesUrl(id)}?download`

/** The bytes of an item, from the page's own origin. */
export function bytesUrl(id: string, variant?: Variant): string {
  const url = new URL(`media/${encodeURIComponent(id)}`, serviceUrl())
  if (variant) url.searchParams.set('variant', variant)
  return url.href
}
