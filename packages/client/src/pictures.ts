import type { Media } from './media.ts'
import { thumbHashUrl } from './thumb-hash.ts'

/**
 * The URL of a smaller picture: of the narrowest size of the service that is at least `width` pixels wide, or of its widest one
 * (docs/interface.md V18). `url` is that of an item, also a signed one that grants all variants (`createLink` with `variant: '*'`).
 */
export const withWidth = (url: string, width: number): string =>
  `${url}${url.includes('?') ? '&' : '?'}w=${width}`

/** The members of a media object from which a picture is shown. */
export type PictureMedia = Pick<
  Media,
  | 'url'
  | 'filename'
  | 'content_type'
  | 'width'
  | 'height'
  | 'alt_text'
  | 'thumbhash'
  | 'focus'
  | 'variants'
  | 'variant_sizes'
>

export interface PictureOptions {
  /**
   * The names of the sizes from which the browser chooses. Default: all that show the whole picture; choose if some have a format of their own
   * or are animated.
   */
  readonly variants?: readonly string[] | undefined
  /** The name of the size for people who ask for less motion, where the others are animated. */
  readonly still?: string | undefined
}

/** The attributes of an `<img>`, and the values of its style. */
export interface Picture {
  readonly src: string
  /** Null if there is only one size. */
  readonly srcset: string | null
  /** The URL for people who ask for less motion; null if it is not chosen. */
  readonly still: string | null
  /** Pixels of the whole picture; null if unknown. */
  readonly width: number | null
  readonly height: number | null
  /** The alternative text of the item, or else its name. */
  readonly alt: string
  /** A `data:` URL to show before the picture is loaded; null if there is none. */
  readonly placeholder: string | null
  /** The CSS value `object-position`; null if the item has no focus. */
  readonly objectPosition: string | null
}

/** Types without variants that every browser shows. */
const shownTypes = new Set(['image/svg+xml', 'image/x-icon', 'image/vnd.microsoft.icon'])

/** Describes how a page shows an item: in all sizes that show it whole. Null if the item has no picture. */
export function pictureOf(media: PictureMedia, { variants, still }: PictureOptions = {}): Picture | null {
  const sizes = wholeSizes(media, variants)
  const widest = sizes.at(-1)
  // The dimensions of some pictures are unknown until the first variant is rendered.
  const src = widest?.url ?? media.variants?.medium ?? (shownTypes.has(media.content_type) ? media.url : null)
  if (src === null) return null
  const { focus, thumbhash } = media
  return {
    src,
    srcset: sizes.length > 1 ? sizes.map(({ url, width }) => `${url} ${width}w`).join(', ') : null,
    still: (still === undefined ? null : media.variants?.[still]) ?? null,
    width: media.width,
    height: media.height,
    alt: media.alt_text ?? media.filename ?? '',
    placeholder: thumbhash ? thumbHashUrl(thumbhash) : null,
    objectPosition: focus ? `${percent(focus.x)} ${percent(focus.y)}` : null,
  }
}

/** The variants that show the whole picture (`contain`), one of each width, the narrowest first. */
function wholeSizes({ width, height, variants, variant_sizes }: PictureMedia, names?: readonly string[]) {
  if (!width || !height || !variants || !variant_sizes) return []
  const sizes = Object.entries(variant_sizes).flatMap(([name, size]) => {
    const url = variants[name]
    const [exactWidth, exactHeight] = [(size.height * width) / height, (size.width * height) / width]
    const isWhole = Math.abs(exactWidth - size.width) <= 1 || Math.abs(exactHeight - size.height) <= 1
    const isChosen = url !== undefined && (names?.includes(name) ?? isWhole)
    return isChosen ? [{ url, width: size.width }] : []
  })
  const byWidth = new Map(sizes.map((size) => [size.width, size]))
  return [...byWidth.values()].sort((a, b) => a.width - b.width)
}

const percent = (share: number): string => `${Math.round(share * 10_000) / 100}%`

/** `src` and `srcset` of a picture of which only the URL is known, in these widths. */
export function sourcesOf(url: string, widths: readonly number[]): { src: string; srcset: string } {
  const sorted = [...new Set(widths)].sort((a, b) => a - b)
  return {
    src: withWidth(url, sorted.at(-1) ?? 1600),
    srcset: sorted.map((width) => `${withWidth(url, width)} ${width}w`).join(', '),
  }
}
