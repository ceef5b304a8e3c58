import { onOrOff, size, timerDuration, variantSizes, wholeNumber } from './readers.ts'
import { setting } from './setting.ts'

/** The settings of smaller pictures, and of the processes that render them. */
export const variantSettings = {
  MEDIABUCKET_VARIANTS: setting(
    'thumb=400, medium=1600',
    variantSizes,
    'The sizes of variants (smaller pictures) by the names that requests use, in pixels. One number is a square; a number without a name is its own name. A picture fits into its size (`contain`, the default) or fills it (`cover`), and is never enlarged. `thumb` and `medium` always exist. Other sizes are never rendered.',
  ),
  MEDIABUCKET_RENDER_AHEAD: setting(
    'on',
    onOrOff,
    'Whether the `thumb` of a new item, and its ThumbHash, are rendered in the background after the upload, so that the gallery shows them at once. They give way to variants that are requested. With `off`, they are rendered at the first request. Set `off` if most items are never viewed.',
  ),
  MEDIABUCKET_VARIANT_PROCESSES: setting(
    '2',
    wholeNumber(1, 64),
    'The maximum number of processes that generate variants (thumbnails) of pictures. Pictures of videos, PDF and HEIC files have further processes: half as many, but at least two if this is not 1. They run only while there is work. Raise it on a machine with many cores.',
  ),
  MEDIABUCKET_VARIANT_QUEUE: setting(
    '500',
    wholeNumber(0, 100_000),
    'The maximum number of variants that wait to be generated. Those of videos, PDF and HEIC files wait in a queue of their own, of the same length. Further requests for new variants are refused with 503.',
  ),
  MEDIABUCKET_VARIANT_TIMEOUT: setting(
    '20s',
    timerDuration,
    'The maximum time to generate one variant. A picture that takes longer has no variants.',
  ),
  MEDIABUCKET_VARIANT_MEMORY: setting(
    '600MB',
    size('600MB or 2GB'),
    'The maximum memory of each of these processes; the process itself needs about 80 MB. A picture that needs more has no variants.',
  ),
  MEDIABUCKET_VARIANT_MEGAPIXELS: setting(
    '200',
    wholeNumber(1, 10_000),
    'The maximum number of pixels of a picture, in millions. A larger picture has no variants.',
  ),
} as const
