import type { ItemTexts, NewMedia, Preview } from '../catalog/records.ts'
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
export function describeMedia(
  settings: UrlSettings,
  media: NewMedia & Partial<Preview & ItemTexts>,
  signer: LinkSigner | null = null,
  formatTime = toIso,
): MediaObject {
  const url = signer === null ? mediaUrl(settings, media.id, media.extension) : signer.sign(media)
  return {
    id: media.id,
    url,
    filename: media.filename,
    content_type: media.contentType,
    size: media.size,
    sha256: Buffer.from(media.sha256).toString('hex'),
    created_at: formatTime(media.createdAt),
    expires_at: media.expiresAt == null ? null : toIso(media.expiresAt),
    width: media.width,
    height: media.height,
    thumbhash: media.thumbhash ? Buffer.from(media.thumbhash).toString('base64') : null,
    duration: media.duration == null ? null : media.duration / 1000,
    alt_text: media.altText ?? null,
    caption: media.caption ?? null,
    variants: hasVariants(media.contentType, settings.tools ?? noTools)
      ? Object.fromEntries(
          (settings.variants ?? builtInSizes).map(({ name }) => [
            name,
            signer === null ? `${url}?variant=${name}` : signer.sign(media, { variant: name }),
          ]),
        )
      : null,
  }
}
