import { newMediaId } from '../core/media-id.ts'
import type { AddedMedia, Preview } from './records.ts'

/** A seeded item, with the preview of a generated picture. */
export type SeededMedia = AddedMedia & Partial<Preview>

interface Kind {
  readonly extension: string | null
  readonly contentType: string
  /** The name of the item with this number. */
  readonly filename: (number: number) => string | null
  /** Bytes, from the smallest to the largest. */
  readonly sizes: readonly [number, number]
  readonly picture: boolean
}

const photo: Kind = {
  extension: 'jpg',
  contentType: 'image/jpeg',
  filename: (number) => `IMG_${String(number % 10_000).padStart(4, '0')}.jpg`,
  sizes: [900_000, 9_000_000],
  picture: true,
}
const screenshot: Kind = {
  extension: 'png',
  contentType: 'image/png',
  filename: (number) => `Screenshot ${number}.png`,
  sizes: [40_000, 2_500_000],
  picture: true,
}
const video: Kind = {
  extension: 'mp4',
  contentType: 'video/mp4',
  filename: (number) => `clip-${number}.mp4`,
  sizes: [2_000_000, 400_000_000],
  picture: false,
}
const document: Kind = {
  extension: 'pdf',
  contentType: 'application/pdf',
  filename: (number) => `invoice-${number}.pdf`,
  sizes: [20_000, 3_000_000],
  picture: false,
}
const unknown: Kind = {
  extension: null,
  contentType: 'application/octet-stream',
  filename: () => null,
  sizes: [0, 1_000_000],
  picture: false,
}

/** Ten items: five photos, two screenshots, one video, one document, one of unknown type. */
const mix = [photo, screenshot, photo, document, photo, video, photo, screenshot, photo, unknown] as const

/** An item without bytes whose other properties resemble those of uploads; they vary with `number`. */
export function seedItem(number: number, createdAt: number): SeededMedia {
  const { extension, contentType, filename, sizes, picture } = mix[number % mix.length] ?? photo
  const [smallest, largest] = sizes
  return {
    id: newMediaId(),
    filename: filename(number),
    contentType,
    extension,
    size: smallest + ((number * 7_919) % (largest - smallest)),
    sha256: null,
    width: picture ? 4_032 : null,
    height: picture ? 3_024 : null,
    createdAt,
    bytes: null,
  }
}
