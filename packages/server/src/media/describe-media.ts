import type { ItemTexts, NewItem, Preview } from '../catalog/records.ts'
import { mediaUrl, type UrlSettings } from '../core/media-url.ts'
import type { LinkSigner } from '../core/signed-url.ts'
import { builtInSizes, hasVariants } from '../core/variant.ts'

/** The media object of an item, as clients receive it (docs/interface.md M1). */
export interface MediaObject {
  readonly id: string
  readonly url: string
  readonly filename: string | null
  readonly content_type: string
  /** Bytes. */
  readonly size: number
  /** Hexadecimal. */
  readonly sha256: string
  /** RFC 3339, UTC. */
  readonly created_at: string
  /** RFC 3339, UTC; null if it does not expire (docs/interface.md E1). */
  readonly expires_at: string | null
  /** Pixels. */
  readonly width: number | null
  readonly height: number | null
  readonly alt_text: string | null
  readonly caption: string | null
  /** Base64; null until the first variant was rendered (docs/interface.md V13). */
  readonly thumbhash: string | null
  /** Seconds. */
  readonly duration: number | null
  /** The URLs of smaller pictures by the names of their sizes; null if the type of the item has none (docs/interface.md V3). */
  readonly variants: Readonly<Record<string, string>> | null
}

const noTools: ReadonlySet<never> = new Set()

const toIso = (time: number): string => new Date(time).toISOString()

/** A new item has no texts except its name. With `signer`, the URLs are signed. */
export function mediaObjectOf(
  urls: UrlSettings,
  item: NewItem & Partial<Preview & ItemTexts>,
  signer: LinkSigner | null = null,
  formatTime = toIso,
): MediaObject {
  const url = signer === null ? mediaUrl(urls, item.id, item.extension) : signer.sign(item)
  return {
    id: item.id,
    url,
    filename: item.filename,
    content_type: item.contentType,
    size: item.size,
    sha256: Buffer.from(item.sha256).toString('hex'),
    created_at: formatTime(item.createdAt),
    expires_at: item.expiresAt == null ? null : toIso(item.expiresAt),
    width: item.width,
    height: item.height,
    thumbhash: item.thumbhash ? Buffer.from(item.thumbhash).toString('base64') : null,
    duration: item.duration == null ? null : item.duration / 1000,
    alt_text: item.altText ?? null,
    caption: item.caption ?? null,
    variants: hasVariants(item.contentType, urls.tools ?? noTools)
      ? Object.fromEntries(
          (urls.variants ?? builtInSizes).map(({ name }) => [
            name,
            signer === null ? `${url}?variant=${name}` : signer.sign(item, { variant: name }),
          ]),
        )
      : null,
  }
}
