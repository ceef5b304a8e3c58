import { setPriority } from 'node:os'
import { createByteSource, planRemoval, readTakenTime, UnreadableFile } from '@mediabucket/strip-metadata'
import { rgbaToThumbHash, thumbHashToAverageRGBA, thumbHashToRGBA } from 'thumbhash'
import { type VariantFormat, variantDimensions } from '../core/variant-sizes.ts'
import type { NewPreview } from '../storage/catalog/records.ts'
import { animationLimits, readAnimation, resizeFrames } from './animations.ts'
import { compareFiles } from './compare-files.ts'
import { resizeFrameTo, resizeTo } from './crops.ts'
import { extractPicture, isUnknownTiff, measureTiff, withoutManyDirectories } from './extracted-pictures.ts'
import { findFirstFrame } from './first-frames.ts'
import {
  maxRead,
  type PictureForm,
  type PictureResult,
  type PictureSize,
  type PictureSource,
  type PictureTask,
  type ReadReply,
  type ReadRequest,
  type Ready,
  type RecordedPreview,
  type RemovalTask,
  type ResizeTask,
} from './picture-task.ts'
import type { PlacedFrame } from './png-chunks.ts'

/**
 * A process that decodes untrusted pictures, so that a picture that crashes the decoder or exhausts its memory ends only
 * this process. It runs one task at a time and returns one result for each. Arguments: the niceness, and the memory limit
 * in bytes.
 */
const [niceness = '0', memoryLimit = '0'] = process.argv.slice(2)

/** Milliseconds between checks of the memory in use. */
const memoryInterval = 20

try {
  setPriority(Number(niceness))
} catch {
  // Not permitted on some systems, and not required.
}
// Ctrl-C in a terminal sends its signal to this process too, which ignores it and ends when the service closes the channel. It
// ends by SIGKILL, because process.exit would wait for the decoder.
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => undefined)
const end = () => process.kill(process.pid, 'SIGKILL')
process.on('disconnect', end)

/** ThumbHash takes pictures of up to 100 × 100 pixels. */
const hashedSide = 100

type Sharp = typeof import('sharp')
type Picture = import('sharp').Sharp
type Metadata = import('sharp').Metadata
type OutputInfo = import('sharp').OutputInfo

/** The quality of an encoder, if it is not its default. */
interface Quality {
  readonly quality?: number
}

/** By format, so that the compiler requires the encoder of a new one. */
const encoders: Readonly<Record<VariantFormat, (picture: Picture, quality: Quality) => Picture>> = {
  webp: (picture, quality) => picture.webp(quality),
  // With this effort AVIF takes no longer than WebP, and is smaller. Higher ones take longer for the same size.
  avif: (picture, quality) => picture.avif({ effort: 0, ...quality }),
  // A JPEG file has no transparency.
  jpeg: (picture, quality) => picture.flatten({ background: 'white' }).jpeg(quality),
  png: (picture) => picture.png(),
  gif: (picture) => picture.gif(),
}

const qualityOf = ({ quality }: PictureForm): Quality => (quality === undefined ? {} : { quality })

let loading: Promise<Sharp['default']> | null = null

async function load(): Promise<Sharp['default']> {
  const { default: sharp } = await import('sharp')
  sharp.cache(false)
  // Workers run in parallel; each uses one core.
  sharp.concurrency(1)
  // Only the decoders of the types in core/variants.ts.
  sharp.block({ operation: ['VipsForeignLoad'] })
  sharp.unblock({
    operation: ['Jpeg', 'Png', 'Webp', 'Nsgif', 'Tiff', 'Heif'].map((name) => `VipsForeignLoad${name}`),
  })
  return sharp
}

async function plan({ contentType, size, bytes, now }: RemovalTask): Promise<PictureResult> {
  const read =
    bytes === null
      ? readFromService
      : async (position: number, length: number) => bytes.subarray(position, position + length)
  try {
    const source = createByteSource(size, read, maxRead)
    const removal = await planRemoval(source, contentType)
    const { format } = removal
    const reading = now === null || format === null ? null : await readTakenTime(source, now, format)
    return { outcome: 'planned', reading, ...removal }
  } catch (error) {
    // A position beyond the end of a buffer, too.
    if (error instanceof UnreadableFile || error instanceof RangeError) return { outcome: 'unreadable' }
    throw error
  }
}

/** Resolves the read that waits for the service. */
let resolveRead: (bytes: Uint8Array) => void = () => undefined

function readFromService(position: number, length: number): Promise<Uint8Array> {
  process.send?.({ outcome: 'read', position, length } satisfies ReadRequest)
  return new Promise((resolve) => {
    resolveRead = resolve
  })
}

async function perform(task: PictureTask): Promise<PictureResult> {
  if (task.type === 'plan-removal') return plan(task)
  let sharp: Sharp['default']
  try {
    loading ??= load()
    sharp = await loading
  } catch (error) {
    if (task.type === 'compare')
      return { outcome: 'compared', verdict: await compareFiles(null, task, Number(memoryLimit)) }
    return { outcome: 'unsupported', reason: error instanceof Error ? error.message : String(error) }
  }
  try {
    if (task.type === 'compare')
      return { outcome: 'compared', verdict: await compareFiles(sharp, task, Number(memoryLimit)) }
    if (task.type === 'measure') {
      const size = await measureTiff(task.picture)
      if (size !== null) return { outcome: 'measured', size }
      const { autoOrient } = await sharp(task.picture, { limitInputPixels: false }).metadata()
      return { outcome: 'measured', size: autoOrient }
    }
    const { picture, extraction, maxPixels } = task
    if (extraction === null) {
      const frame = await findFirstFrame(picture)
      const shown = frame ? await onCanvas(sharp, frame, maxPixels) : await withoutManyDirectories(picture)
      const source = { picture: shown, duration: null, hasOwnSize: true, isUpright: false, isHeic: false }
      return await resize(sharp, task, { ...source, isFrame: frame !== null })
    }
    if (typeof picture !== 'string') throw new TypeError('a program needs a file')
    const extracted = await extractPicture(extraction, picture, task, Number(memoryLimit))
    if (extracted === null) return { outcome: 'unreadable' }
    if ('hiding' in extracted) return { outcome: 'several', ...extracted }
    const isHeic = extraction.tool === 'heif-convert'
    return await resize(sharp, task, { ...extracted, picture: extracted.bytes, isFrame: false, isHeic })
  } catch {
    const isUnknown = task.type === 'resize' && (await isUnknownTiff(task.picture).catch(() => false))
    return { outcome: isUnknown ? 'unknown-form' : 'unreadable' }
  }
}

/** A picture that the library decodes. */
interface Source {
  readonly picture: PictureSource
  readonly duration: number | null
  readonly hasOwnSize: boolean
  readonly isUpright: boolean
  /** Whether it is a frame of an animation, of which the decoder shows something else. */
  readonly isFrame: boolean
  readonly isHeic: boolean
}

/** The frame at its place on the canvas of the animation. */
async function onCanvas(
  sharp: Sharp['default'],
  { picture, place }: PlacedFrame,
  maxPixels: number,
): Promise<PictureSource> {
  if (place === null) return picture
  const frame = sharp(picture, { limitInputPixels: maxPixels })
  const metadata = await frame.metadata()
  const { left, top, right, bottom } = place
  if ((left + metadata.width + right) * (top + metadata.height + bottom) > maxPixels)
    throw new RangeError('the canvas has too many pixels')
  return inSrgb(frame, metadata)
    .ensureAlpha()
    .extend({ ...place, background: { r: 0, g: 0, b: 0, alpha: 0 } })
    .png({ compressionLevel: 1 })
    .toBuffer()
}

async function resize(sharp: Sharp['default'], task: ResizeTask, source: Source): Promise<PictureResult> {
  const { form, maxPixels, recorded } = task
  const metadata = await sharp(source.picture, { limitInputPixels: maxPixels }).metadata()
  // The library takes whole numbers of 32 bits for those of 8.
  if (metadata.depth === 'uint' || metadata.depth === 'int') return { outcome: 'unknown-form' }
  const shown = source.isUpright ? metadata : metadata.autoOrient
  // Of what the decoder only warns about, the picture is shown.
  const open = (): Picture =>
    inSrgb(
      sharp(source.picture, {
        limitInputPixels: maxPixels,
        sequentialRead: true,
        autoOrient: !source.isUpright,
        failOn: 'error',
      }),
      metadata,
    )
  async function renderStill(): Promise<Uint8Array<ArrayBuffer>> {
    const resized = resizeTo(open(), form, shown)
    return await encoders[form.format](resized, qualityOf(form)).toBuffer()
  }
  const bytes = (await renderAnimation(sharp, task)) ?? (await renderStill())

  const tolerance = toleranceOf(source, metadata)
  if (recorded === null || (recorded.thumbhash !== null && tolerance === null))
    return { outcome: 'resized', bytes, preview: null }
  const preview = await describe(source, shown, isHashable(form, metadata, shown) ? sharp(bytes) : open())
  if (recorded.thumbhash === null) return { outcome: 'resized', bytes, preview }
  const isCorrection = tolerance !== null && !isSamePicture(preview, recorded, tolerance)
  return { outcome: 'resized', bytes, preview: isCorrection ? { ...preview, isCorrection } : null }
}

/** Whether a variant has all that the hash of its picture shows: every part, the transparency, and enough pixels. */
function isHashable(form: PictureForm, { hasAlpha }: Metadata, shown: PictureSize): boolean {
  if (form.fit !== 'contain' || (form.format === 'jpeg' && hasAlpha)) return false
  const { width, height } = variantDimensions(form, shown)
  return Math.max(width, height) >= Math.min(hashedSide, Math.max(shown.width, shown.height))
}

/** Bytes that each pixel of an animation takes: decoded, resized and in the encoder. */
const bytesOfPixel = 10
/** Bytes of a process without a picture. */
const ownMemory = 150e6

/** An animated picture with its movement; null if the size or the picture has none, or it would take too much. */
async function renderAnimation(
  sharp: Sharp['default'],
  { form, picture, extraction, animationTime = 0 }: ResizeTask,
): Promise<Uint8Array<ArrayBuffer> | null> {
  if (!form.isAnimated || extraction !== null || (form.format !== 'webp' && form.format !== 'gif'))
    return null
  const end = performance.now() + animationTime
  const secondsLeft = () => Math.floor((end - performance.now()) / 1000)
  const pixels = Math.min(animationLimits.pixels, (Number(memoryLimit) - ownMemory) / bytesOfPixel)
  try {
    const animation = await readAnimation(sharp, picture, { ...animationLimits, pixels }, secondsLeft)
    if (animation === null) return null
    const toFrame = (frame: Picture, first: OutputInfo | null) => resizeFrameTo(frame, form, animation, first)
    const resized = await resizeFrames(sharp, animation, toFrame, () => performance.now() > end)
    const seconds = secondsLeft()
    if (resized === null || seconds < 1) return null
    const options = { delay: animation.frames.map(({ delay }) => delay), loop: animation.loop }
    const timed = resized.timeout({ seconds })
    return await (form.format === 'gif'
      ? timed.gif(options)
      : timed.webp({ ...options, ...qualityOf(form) })
    ).toBuffer()
  } catch {
    // A damaged animation is shown as its first frame, if that can be read.
    return null
  }
}

/** The decoder converts colours of 16 bits to those of Display P3 and drops that profile, and ignores the profile of grey ones. */
const conversions: ReadonlyMap<string | undefined, 'srgb' | 'b-w'> = new Map([
  ['rgb16', 'srgb'],
  ['grey16', 'b-w'],
])

/** Reduces colours to 8 bits before their profile is applied. */
function inSrgb(picture: Picture, { space, icc }: Metadata): Picture {
  const conversion = icc === undefined ? undefined : conversions.get(space)
  return conversion === undefined ? picture : picture.pipelineColourspace(conversion)
}

/**
 * The square of the mean difference between two placeholders of one picture; null if no version has recorded a wrong one. Development versions
 * turned some HEIC pictures twice, rendered colours of 16 bits wrongly, and showed another picture instead of a first frame.
 */
function toleranceOf({ isFrame, isHeic }: Source, { space, icc }: Metadata): number | null {
  if (isFrame || (icc !== undefined && conversions.has(space))) return 40
  return isHeic ? 200 : null
}

/** Whether what was recorded of a picture is of this one. The placeholders of two of its variants differ a little. */
function isSamePicture(
  { thumbhash, width, height }: NewPreview,
  recorded: RecordedPreview,
  tolerance: number,
): boolean {
  if (width !== recorded.width || height !== recorded.height) return false
  if (thumbhash === null || recorded.thumbhash === null) return false
  const [{ rgba: one }, { rgba: other }] = [thumbHashToRGBA(thumbhash), thumbHashToRGBA(recorded.thumbhash)]
  if (one.length === other.length) return distance(one, other) < tolerance
  // Sizes of variants are rounded. A picture that was turned has another size.
  const averages = [thumbhash, recorded.thumbhash].map((hash) => {
    const { r, g, b, a } = thumbHashToAverageRGBA(hash)
    return [r, g, b, a].map((value) => value * 255)
  })
  return width !== null && distance(averages[0] ?? [], averages[1] ?? []) < tolerance
}

/** The square of the mean difference. */
const distance = (one: ArrayLike<number>, other: ArrayLike<number>): number =>
  Array.from(one).reduce((sum, value, at) => sum + (value - (other[at] ?? 0)) ** 2, 0) / one.length

async function describe(
  { duration, hasOwnSize }: Source,
  shown: PictureSize,
  hashed: Picture,
): Promise<NewPreview> {
  const { data, info } = await hashed
    .resize({ width: hashedSide, height: hashedSide, fit: 'inside', withoutEnlargement: true })
    .toColourspace('srgb')
    .ensureAlpha()
    .raw({ depth: 'uchar' })
    .toBuffer({ resolveWithObject: true })
  const thumbhash = rgbaToThumbHash(info.width, info.height, data)
  const { width, height } = hasOwnSize ? shown : { width: null, height: null }
  return { thumbhash, duration, width, height }
}

process.on('message', async (task: PictureTask | ReadReply) => {
  if (task.type === 'bytes') return resolveRead(task.bytes)
  const watch = setInterval(() => {
    if (process.memoryUsage.rss() > Number(memoryLimit)) end()
  }, memoryInterval)
  const result = await perform(task)
  clearInterval(watch)
  process.send?.(result)
})

loading ??= load()
// A task reports why it cannot be loaded.
loading.catch(() => undefined).then(() => process.send?.({ outcome: 'ready' } satisfies Ready))
