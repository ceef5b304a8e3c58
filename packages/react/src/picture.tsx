import { type PictureMedia, pictureOf, sourcesOf } from '@mediabucket/client'
import {
  type ComponentPropsWithoutRef,
  type CSSProperties,
  type ReactNode,
  useCallback,
  useState,
} from 'react'

type ImageProps = Omit<ComponentPropsWithoutRef<'img'>, 'src' | 'srcSet'>

interface OfMedia {
  /** The media object of an item. In a private bucket it needs signed URLs: `urls: 'signed'` of `useItems` and `describe`. */
  readonly media: PictureMedia
  /** The names of the sizes from which the browser chooses. Default: all that show the whole picture. */
  readonly variants?: readonly string[] | undefined
  /** The name of the size for people who ask for less motion, where the others are animated. */
  readonly still?: string | undefined
  readonly src?: undefined
  readonly widths?: undefined
  /** What is shown of an item that has no picture. Default: nothing. */
  readonly fallback?: ReactNode
}

interface OfUrl {
  readonly media?: undefined
  readonly variants?: undefined
  readonly still?: undefined
  /** The URL of an item, in a private bucket a link with `variant: '*'`. */
  readonly src: string
  /** Widths of the service, for `srcset`. Pixels. */
  readonly widths: readonly number[]
  readonly alt: string
  readonly fallback?: undefined
}

export type PictureProps = ImageProps & (OfMedia | OfUrl)

/** An `<img>` whose size the browser chooses, with a placeholder until it is loaded. `sizes` states how wide the page shows it. */
export function Picture({
  media,
  variants,
  still,
  src,
  widths,
  fallback = null,
  ...props
}: PictureProps): ReactNode {
  const [loadedSrc, setLoadedSrc] = useState<string | null>(null)
  const picture = media === undefined ? null : pictureOf(media, { variants, still })
  const sources = src === undefined ? { src: picture?.src, srcset: picture?.srcset } : sourcesOf(src, widths)
  const shownSrc = sources.src
  // Before the page is hydrated, the picture may have been loaded without an event.
  const checkLoaded = useCallback(
    (image: HTMLImageElement | null) => {
      if (shownSrc !== undefined && image?.complete && image.naturalWidth > 0) setLoadedSrc(shownSrc)
    },
    [shownSrc],
  )
  if (shownSrc === undefined) return fallback
  const { style, onLoad, ...attributes } = props
  const placeholder = loadedSrc === shownSrc ? null : (picture?.placeholder ?? null)
  const image = (
    <img
      alt={picture?.alt}
      width={picture?.width ?? undefined}
      height={picture?.height ?? undefined}
      loading="lazy"
      decoding="async"
      {...attributes}
      ref={checkLoaded}
      src={shownSrc}
      srcSet={sources.srcset ?? undefined}
      style={{ ...styleOf(picture?.objectPosition ?? null, placeholder), ...style }}
      onLoad={(event) => {
        setLoadedSrc(shownSrc)
        onLoad?.(event)
      }}
    />
  )
  if (!picture?.still) return image
  return (
    <picture>
      <source media="(prefers-reduced-motion: reduce)" srcSet={picture.still} />
      {image}
    </picture>
  )
}

function styleOf(objectPosition: string | null, placeholder: string | null): CSSProperties {
  return {
    ...(objectPosition !== null && { objectPosition }),
    ...(placeholder !== null && {
      backgroundImage: `url(${placeholder})`,
      backgroundPosition: objectPosition ?? 'center',
      backgroundRepeat: 'no-repeat',
      backgroundSize: 'cover',
    }),
  }
}
