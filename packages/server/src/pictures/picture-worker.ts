import { setPriority } from 'node:os'
import { isDeepStrictEqual } from 'node:util'
import { createByteSource, planRemoval, UnreadableFile } from '@mediabucket/strip-metadata'
import type { Metadata, SharpOptions } from 'sharp'
import { rgbaToThumbHash, thumbHashToRGBA } from 'thumbhash'
import type { NewPreview } from '../storage/catalog/records.ts'
import {
  digestOutput,
  extractPicture,
  heifDecoding,
  measureTiff,
  ProgramTimeout,
  withoutManyDirectories,
} from './extracted-pictures.ts'
import {
  type ComparisonTask,
  maxRead,
  type PictureResult,
  type PictureSource,
  type PictureTask,
  type ReadReply,
  type ReadRequest,
  type Ready,
  type RecordedPreview,
  type RemovalTask,
  type ResizeTask,
  type Verdict,
} from './picture-task.ts'

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

/**
 * Measured: with this effort AVIF takes no longer than WebP, and is a quarter to a third smaller. With the next higher ones it takes two
 * and five times as long, for the same size.
 */
const avif = { effort: 0 }

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

async function plan({ contentType, size, bytes }: RemovalTask): Promise<PictureResult> {
  const read =
    bytes === null
      ? readFromService
      : async (position: number, length: number) => bytes.subarray(position, position + length)
  try {
    return { outcome: 'planned', ...(await planRemoval(createByteSource(size, read, maxRead), contentType)) }
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
    const { picture, extraction } = task
    if (extraction === null) {
      const shown = await withoutManyDirectories(picture)
      return await resize(sharp, task, { picture: shown, duration: null, hasOwnSize: true, isUpright: false })
    }
    if (typeof picture !== 'string') throw new TypeError('a program needs a file')
    const extracted = await extractPicture(extraction, picture, task, Number(memoryLimit))
    if (extracted === null) return { outcome: 'unreadable' }
    if ('hiding' in extracted) return { outcome: 'several', ...extracted }
    return await resize(sharp, task, { ...extracted, picture: extracted.bytes })
  } catch {
    return { outcome: 'unreadable' }
  }
}

/** A picture that the library decodes. */
interface Source {
  readonly picture: PictureSource
  readonly duration: number | null
  readonly hasOwnSize: boolean
  readonly isUpright: boolean
}

async function resize(
  sharp: Sharp['default'],
  { form, maxPixels, recorded }: ResizeTask,
  source: Source,
): Promise<PictureResult> {
  const { width, height, fit, format } = form
  const resized = sharp(source.picture, {
    limitInputPixels: maxPixels,
    sequentialRead: true,
    autoOrient: !source.isUpright,
    failOn: 'error',
  }).resize({ width, height, fit: fit === 'cover' ? 'cover' : 'inside', withoutEnlargement: true })
  const encoded = format === 'avif' ? resized.avif(avif) : resized.webp()
  const bytes = await encoded.toBuffer()
  // The hash is computed from the variant, unless a part of the picture was cut off.
  const hashed = fit === 'contain' ? bytes : source.picture
  const preview = recorded && (await describe(sharp, source, hashed, maxPixels))
  if (!preview || !recorded?.thumbhash) return { outcome: 'resized', bytes, preview }
  const isCorrection = !isSamePicture(preview, recorded)
  return { outcome: 'resized', bytes, preview: isCorrection ? { ...preview, isCorrection } : null }
}

/** Squares of the mean difference between two placeholders of one picture are far below this. */
const maxDifference = 200

/** Whether what was recorded of a picture is of this one. The placeholders of two of its variants differ a little. */
function isSamePicture({ thumbhash, width, height }: NewPreview, recorded: RecordedPreview): boolean {
  if (width !== recorded.width || height !== recorded.height) return false
  if (thumbhash === null || recorded.thumbhash === null) return false
  const [{ rgba: one }, { rgba: other }] = [thumbHashToRGBA(thumbhash), thumbHashToRGBA(recorded.thumbhash)]
  if (one.length !== other.length) return false
  return one.reduce((sum, value, at) => sum + (value - (other[at] ?? 0)) ** 2, 0) / one.length < maxDifference
}

async function describe(
  sharp: Sharp['default'],
  { picture, duration, hasOwnSize, isUpright }: Source,
  hashed: PictureSource,
  maxPixels: number,
): Promise<NewPreview> {
  const found = await sharp(picture, { limitInputPixels: maxPixels }).metadata()
  const { data, info } = await sharp(hashed, { limitInputPixels: maxPixels, autoOrient: !isUpright })
    .resize({ width: hashedSide, height: hashedSide, fit: 'inside', withoutEnlargement: true })
    .toColourspace('srgb')
    .ensureAlpha()
    .raw({ depth: 'uchar' })
    .toBuffer({ resolveWithObject: true })
  const thumbhash = rgbaToThumbHash(info.width, info.height, data)
  const size = isUpright ? found : found.autoOrient
  const { width, height } = hasOwnSize ? size : { width: null, height: null }
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

/** Bytes of decoded pixels in memory at a time, of each file. A picture with more of them is decoded once for each part. */
const maxPart = 96 * 1024 * 1024

/** Pixels of one picture, which is decoded at most eight times, and of all pictures in a file. */
const maxPixels = { each: 250_000_000, all: 2_000_000_000 }

/**
 * Milliseconds for one decoding of a HEIC file, and for the whole comparison, which is less than the task has. What the programs have not
 * decoded until then is not compared: pictures that heif-convert does not know, and long videos on a slow disk.
 */
const maxTime = { heif: 30_000, all: 100_000 }

type Decode = typeof import('sharp')['default']

/** Viewers show damaged pictures as far as they are readable, so these are compared as far as that. */
const tolerant: SharpOptions = {
  ...{ limitInputPixels: false, sequentialRead: true, failOn: 'none', ignoreIcc: true },
}

/** A picture in a file, or frames of an animation, by the options that select them. */
type Place = Pick<SharpOptions, 'page' | 'pages' | 'tiff'>

/**
 * Compares a file with its copy without metadata by decoders that do not know how the copy was made: the pixels of all pictures, their
 * orientation and colour profile, and the packets of pictures and sounds. `decode` is null where the library is not available; `memory`
 * limits each program, in bytes. Throws if the system does not run a program to its end.
 */
export async function compareFiles(
  decode: Decode | null,
  { before, after, programs }: ComparisonTask,
  memory: number,
): Promise<Verdict> {
  const deadline = performance.now() + maxTime.all
  const pictures = decode === null ? 'unchecked' : await comparePictures(decode, before, after)
  if (programs === null || pictures === 'different' || pictures === 'too-large') return pictures
  if (typeof before !== 'string' || typeof after !== 'string') throw new TypeError('a program needs files')
  const { ffmpeg, heif } = programs
  const compareOutput = async (
    commandFor: (path: string) => readonly [string, readonly string[]],
    most = maxTime.all,
  ): Promise<Verdict | null> => {
    const digest = (path: string) =>
      digestOutput(...commandFor(path), { memory, timeout: Math.min(most, deadline - performance.now()) })
    try {
      const sent = await digest(before)
      if (sent === null) return null
      return sent === (await digest(after)) ? 'same' : 'different'
    } catch (error) {
      if (error instanceof ProgramTimeout) return 'unchecked'
      throw error
    }
  }
  const heifVerdict =
    pictures === 'unchecked' && heif
      ? // The format without compression.
        await compareOutput((path) => heifDecoding(heif.program, path, `${heif.output}.y4m`), maxTime.heif)
      : null
  const movieVerdict = ffmpeg ? await compareOutput((path) => [ffmpeg, packetsOf(path)]) : null
  const verdicts = [pictures, heifVerdict, movieVerdict]
  if (verdicts.includes('different')) return 'different'
  if (verdicts.includes('same')) return 'same'
  return verdicts.includes('unchecked') || ffmpeg === null ? 'unchecked' : 'undecodable'
}

/** The times, the flags and a checksum of each packet, without covers, which are metadata. */
const packetsOf = (path: string): readonly string[] => [
  ...['-nostdin', '-v', 'error', '-protocol_whitelist', 'file,pipe', '-copyts', '-f', 'mov'],
  ...['-i', `file:${path}`, '-map', '0:V?', '-map', '0:a?', '-c', 'copy'],
  ...['-f', 'framehash', '-hash', 'adler32', '-'],
]

async function comparePictures(
  decode: Decode,
  before: PictureSource,
  after: PictureSource,
): Promise<Verdict> {
  const sent = await describePixels(decode, before)
  if (sent === null) return 'undecodable'
  const stored = await describePixels(decode, after)
  if (!isDeepStrictEqual(sent.map(comparable), stored?.map(comparable))) return 'different'
  const sizes = sent.map(({ place: { pages = 1 }, metadata: { width, height } }) => pages * width * height)
  const all = sizes.reduce((sum, size) => sum + size, 0)
  if (all > maxPixels.all || Math.max(...sizes) > maxPixels.each) return 'too-large'
  for (const { place, metadata } of sent) {
    const verdict = await comparePixels(decode, before, after, { ...tolerant, ...place }, metadata)
    // A form of HEIF whose decoder is not in the library.
    if (verdict === 'undecodable' && metadata.format === 'heif') return 'unchecked'
    if (verdict !== 'same') return verdict
  }
  return 'same'
}

interface Described {
  readonly place: Place
  readonly metadata: Metadata
}

/** All pictures in a file, also those in TIFF directories of others; null if it has none that the library knows. */
async function describePixels(decode: Decode, file: PictureSource): Promise<Described[] | null> {
  const read = async (place: Place): Promise<Described> => ({
    place,
    metadata: await decode(file, { ...tolerant, ...place }).metadata(),
  })
  try {
    const first = await read({})
    const { format, width, height, pages = 1, subifds = 0 } = first.metadata
    const isScan = format === 'tiff' && pages > 1 && subifds === 0
    // The library reads all pages at once if they have one size. The frames before a frame of an animation are decoded too.
    if (format === 'webp' || (isScan && (await read({ pages: -1 }).catch(() => null)) !== null)) {
      const atOnce = Math.max(1, Math.floor(maxPart / (width * height * 4)))
      return Array.from({ length: Math.ceil(pages / atOnce) }, (_, index) => {
        const page = index * atOnce
        return { ...first, place: { page, pages: Math.min(atOnce, pages - page) } }
      })
    }
    const found = [first]
    for (let page = 1; page < pages; page += 1) found.push(await read({ page }))
    if (format !== 'tiff') return found
    for (const { place, metadata } of [...found])
      for (let subifd = 0; subifd < (metadata.subifds ?? 0); subifd += 1)
        found.push(await read({ ...place, tiff: { subifd } }))
    return found
  } catch {
    return null
  }
}

/** What stays the same. */
const comparable = ({ place, metadata }: Described) => {
  const { format, width, height, space, channels, depth, pages, loop, delay, subifds } = metadata
  const { icc, hasAlpha, orientation = 1 } = metadata
  return {
    ...{ place, format, width, height, space, channels, depth, pages, loop, delay, subifds },
    ...{ icc, hasAlpha, orientation },
  }
}

async function comparePixels(
  decode: Decode,
  before: PictureSource,
  after: PictureSource,
  options: SharpOptions,
  { width, height, space, depth, hasAlpha }: Metadata,
): Promise<Verdict> {
  const isDeep = depth === 'ushort'
  const isGrey = space === 'b-w' && !hasAlpha && depth === 'uchar'
  // The library converts other colours to sRGB.
  const channels = isGrey ? 1 : hasAlpha || space === 'cmyk' ? 4 : 3
  const rows = Math.max(1, Math.floor(maxPart / (width * channels * (isDeep ? 2 : 1))))
  for (let top = 0; top < height; top += rows) {
    const part = { left: 0, top, width, height: Math.min(rows, height - top) }
    const pixels = (file: PictureSource) => {
      const opened = decode(file, options)
      // Frames of an animation, which fit into memory together, are decoded to one picture.
      if ((options.pages ?? 1) === 1) opened.extract(part)
      if (isGrey) opened.toColourspace('b-w')
      if (space === 'cmyk') opened.pipelineColourspace('cmyk').toColourspace('cmyk')
      if (isDeep) opened.toColourspace(space === 'grey16' ? 'grey16' : 'rgb16')
      return opened.raw({ depth: isDeep ? 'ushort' : 'uchar' }).toBuffer()
    }
    const sent = await pixels(before).catch(() => null)
    if (sent === null) return 'undecodable'
    const stored = await pixels(after).catch(() => null)
    const isSame = stored !== null && sent.equals(stored)
    for (const bytes of [sent, stored]) freed(bytes)
    if (!isSame) return 'different'
  }
  return 'same'
}

/** Releases the memory at once: the next part would be decoded before the next garbage collection. */
function freed(bytes: Buffer | null): void {
  if (bytes?.buffer instanceof ArrayBuffer && bytes.byteLength === bytes.buffer.byteLength)
    bytes.buffer.transfer(0)
}
