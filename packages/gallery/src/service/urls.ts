import type { Media } from '@mediabucket/client'
import { addressName } from '@mediabucket/client/rules'

/** The base URL of the server for this page: the directory that the page was loaded from, not the configured base URL. */
export const serviceUrl = (): URL => new URL('.', document.baseURI)

/** The name of a size. Every service has `thumb` and `medium`. */
export type Variant = string

/** What the URLs of an item's bytes depend on. */
export type Addressed = Pick<Media, 'id' | 'url' | 'variants'>

/** Whether an item is in a private bucket: its bytes need a signed URL. */
export const isPrivate = ({ url }: Pick<Media, 'url'>): boolean => /[?&]signature=/.test(url)

/** The URL of an item's bytes on the page's own origin. That of an item in a private bucket expires. */
export function bytesUrl(media: Addressed, variant?: Variant): string {
  if (isPrivate(media))
    return onOwnOrigin((variant === undefined ? null : media.variants?.[variant]) ?? media.url)
  const url = new URL(`media/${encodeURIComponent(media.id)}`, serviceUrl())
  if (variant) url.searchParams.set('variant', variant)
  return url.href
}

/** The URL of the page's own origin with this path below `media/` and this query. */
export const onOwnOrigin = (url: string): string =>
  new URL(url.slice(url.lastIndexOf('/media/') + 1), serviceUrl()).href

/** The URL of an item in a public bucket as an attachment: browsers ignore `<a download>` for URLs of other origins. */
export const downloadUrl = (media: Addressed): string => `${bytesUrl(media)}?download`

/** The URL of an item's bytes without a signature. */
export const plainUrl = ({ url }: Pick<Media, 'url'>): string => url.replace(/\?.*$/s, '')

/** Whether links have the names of files; `service` for as the service writes them. */
export type LinkNames = 'service' | 'on' | 'off'

/** The start of a URL up to the id, the name in it, and the extension. */
const parts = /^(.*\/media\/[^/.]+)(?:\/([^/.]*))?(\.[^/]*)?$/

/** Whether the service writes the name of an item into its URL (docs/interface.md B13). */
export const hasName = (media: Pick<Media, 'url'>): boolean => parts.exec(plainUrl(media))?.[2] !== undefined

/** The URL of an item's bytes without a signature, with its name or without. */
export function addressOf(media: Pick<Media, 'url' | 'filename'>, names: LinkNames): string {
  const plain = plainUrl(media)
  const [, start = plain, sent, extension = ''] = parts.exec(plain) ?? []
  const hasSent = sent !== undefined
  if (names === 'service' || (names === 'on') === hasSent) return plain
  if (hasSent) return start + extension
  const name = addressName(media.filename ?? '')
  return name === '' ? plain : `${start}/${encodeURIComponent(name)}${extension}`
}

/** The id in the URL of an item, whose host may differ from the page's; empty if the URL has none. */
export const mediaIdOf = (url: string): string =>
  /\/media\/([^/.?#]+)(?:\.[^/?#]*)?(?:\?[^/]*)?$/.exec(url)?.[1] ?? ''
