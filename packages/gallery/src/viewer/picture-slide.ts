import type { Media } from '@mediabucket/client'
import { bytesUrl } from '../service/urls.ts'

/** How a picture is fetched and how large it is, in the terms of PhotoSwipe. */
export interface PictureSlide {
  readonly src: string
  readonly srcset?: string
  /** Shown until the picture is there. */
  readonly msrc: string
  readonly width: number
  readonly height: number
  readonly alt: string
}

/** What every browser shows by itself. */
const shownByBrowsers = /^image\/(?:jpeg|png|gif|webp|avif|bmp|svg\+xml|x-icon|vnd\.microsoft\.icon)$/
const animated = /^image\/(?:gif|webp|png|avif|svg\+xml)$/
/** Of variants, pixels: docs/interface.md V1. */
const mediumEdge = 1600
/** For a picture of unknown size, until it has arrived. */
const guess = { width: 1200, height: 900 }

/** Screens that are small for a picture get a small one of it; zooming in fetches the picture itself. */
export function pictureSlide(media: Media, alt: string): PictureSlide {
  const { width, height } = media.width && media.height ? { width: media.width, height: media.height } : guess
  const original = bytesUrl(media.id)
  const medium = bytesUrl(media.id, 'medium')
  const slide = { msrc: bytesUrl(media.id, 'thumb'), width, height, alt }
  if (!shownByBrowsers.test(media.content_type)) return { ...slide, src: medium }
  const longest = Math.max(width, height)
  if (media.width === null || longest <= mediumEdge || animated.test(media.content_type)) {
    return { ...slide, src: original }
  }
  const mediumWidth = Math.round((width * mediumEdge) / longest)
  return { ...slide, src: original, srcset: `${medium} ${mediumWidth}w, ${original} ${width}w` }
}
