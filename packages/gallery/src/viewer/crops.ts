import type { Focus, Media } from '@mediabucket/client'

/** Pixels. */
interface Dimensions {
  readonly width: number
  readonly height: number
}

/** A size that cuts a picture. */
export interface Crop extends Dimensions {
  readonly name: string
}

const widthAndHeight = ['width', 'height'] as const

/** Whether a variant shows less than the whole picture. Rounding changes a side by less than a pixel. */
function isCut(variant: Dimensions, picture: Dimensions): boolean {
  const scale = Math.max(...widthAndHeight.map((side) => variant[side] / picture[side]))
  return widthAndHeight.some((side) => variant[side] < Math.floor(picture[side] * scale))
}

/** The variants of an item that do not show the whole picture, in the order of the service. */
export function cropsOf({ width, height, variant_sizes }: Media): readonly Crop[] {
  if (!width || !height) return []
  return Object.entries(variant_sizes ?? {}).flatMap(([name, size]) =>
    isCut(size, { width, height }) ? [{ name, ...size }] : [],
  )
}

/**
 * Where the picture is in a crop, as the CSS property `object-position` has it. The focus is as near to the middle as the picture reaches
 * (docs/interface.md M11).
 */
export function positionIn(crop: Dimensions, picture: Dimensions, { x, y }: Focus): string {
  const scale = Math.max(crop.width / picture.width, crop.height / picture.height)
  const [across, down] = [
    shareBefore(crop.width, picture.width * scale, x),
    shareBefore(crop.height, picture.height * scale, y),
  ]
  return `${across}% ${down}%`
}

/** How much of what is cut off is before a crop. Percent, with one decimal. */
function shareBefore(length: number, whole: number, focus: number): number {
  const cut = whole - length
  if (cut <= 0) return 50
  const before = Math.min(Math.max(focus * whole - length / 2, 0), cut)
  return Math.round((before / cut) * 1000) / 10
}
