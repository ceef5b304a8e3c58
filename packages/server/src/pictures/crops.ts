import type { OutputInfo, Sharp } from 'sharp'
import { focusOf } from '../core/focus.ts'
import { scaledDimensions, variantDimensions, variantScale } from '../core/variant-sizes.ts'
import type { PictureForm, PictureSize } from './picture-task.ts'

/** The part of a scaled picture that a `cover` size shows: as near to the middle of the frame as the focus can be. Pixels. */
function focusedRegion(form: PictureForm, scaled: PictureSize, stored: number) {
  const { x, y } = focusOf(stored)
  const [width, height] = [Math.min(form.width, scaled.width), Math.min(form.height, scaled.height)]
  const startOf = (share: number, whole: number, part: number) =>
    Math.max(0, Math.min(whole - part, Math.round(share * whole - part / 2)))
  return {
    left: startOf(x, scaled.width, width),
    top: startOf(y, scaled.height, height),
    ...{ width, height },
  }
}

/** Resizes a picture to a size. `shown` is the picture as it is displayed. */
export function resizeTo(picture: Sharp, form: PictureForm, shown: PictureSize): Sharp {
  const { width, height, fit, crop = 'center' } = form
  // `inside` computes one side from a JPEG that the decoder has shrunk, which differs by a pixel from what media objects state.
  if (fit === 'contain') return picture.resize({ ...variantDimensions(form, shown), fit: 'fill' })
  if (typeof crop !== 'number')
    return picture.resize({
      ...{ width, height, fit, withoutEnlargement: true },
      ...(crop === 'attention' ? { position: crop } : {}),
    })
  const scaled = scaledDimensions(shown, variantScale(form, shown))
  return picture.resize({ ...scaled, fit: 'fill' }).extract(focusedRegion(form, scaled, crop))
}

/** Resizes a frame of an animation. `first` describes the first frame after this; all others show the same part of the canvas. */
export function resizeFrameTo(
  frame: Sharp,
  form: PictureForm,
  canvas: PictureSize,
  first: OutputInfo | null,
): Sharp {
  const { cropOffsetLeft, cropOffsetTop } = first ?? {}
  if (first === null || cropOffsetLeft === undefined || cropOffsetTop === undefined)
    return resizeTo(frame, form, canvas)
  const { width, height } = first
  const scaled = scaledDimensions(canvas, variantScale(form, canvas))
  // The library states how far it has moved the frame, which it may have scaled to a side that is longer by a pixel.
  return frame.resize({ ...scaled, fit: 'fill' }).extract({
    left: Math.min(-cropOffsetLeft, scaled.width - width),
    top: Math.min(-cropOffsetTop, scaled.height - height),
    ...{ width, height },
  })
}
