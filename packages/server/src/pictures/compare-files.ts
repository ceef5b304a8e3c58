import { isDeepStrictEqual } from 'node:util'
import type { Metadata, SharpOptions } from 'sharp'
import { digestOutput, heifDecoding, ProgramTimeout } from './extracted-pictures.ts'
import type { ComparisonTask, PictureSource, Verdict } from './picture-task.ts'

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
