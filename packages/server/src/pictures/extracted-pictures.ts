import { type ChildProcess, spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import {
  type Box,
  type ByteSource,
  boxAt,
  childOf,
  childrenOf,
  createByteSource,
  dataOf,
  type LoadedBoxes,
  loadBox,
  readDirectory,
  readFormat,
  readNumbers,
  sizesOf,
  type TiffDirectory,
  UnreadableFile,
  withFile,
} from '@mediabucket/strip-metadata'
import type { Extraction, HidingByte, PictureSize, PictureSource, ResizeTask } from './picture-task.ts'

/** The picture of a file of another type. */
interface ExtractedPicture {
  readonly bytes: Uint8Array
  /** Of a video, in milliseconds. */
  readonly duration: number | null
  /** Whether the pixels of the picture are those of the file. */
  readonly hasOwnSize: boolean
  /** Whether the program has applied all transformations, so that an orientation in the metadata must not be applied again (MIAF). */
  readonly isUpright: boolean
}

/** Bytes of the output of a program. */
const maxOutput = 128 * 1024 * 1024

const setpriv = '/usr/bin/setpriv'
const endWithParent = ['--pdeathsig', 'KILL', '--']

/** Runs a program that writes only to files: its output is a link to the descriptor 3 (pictures/tools.ts), here a pipe. */
const throughPipe = `${setpriv} ${endWithParent.join(' ')} "$@" 3>&1 >/dev/null | exec cat`

/** Seconds of CPU time. The time limit of the task is shorter. */
const maxCpu = 300

/** Bytes of address space besides the memory: what threads reserve, and shared memory, which is not data. */
const reservedSpace = 4 * 1024 ** 3

/** The frame of a video is at a tenth of its duration, at most this many milliseconds after its start: many begin with a black frame. */
const maxFrameTime = 5_000

/** The largest side of a page, in pixels. */
const maxPageSide = 4_096

/**
 * Gets a picture from a file by a program that cannot write files, gain privileges or use more than `memory` bytes. The program ends with
 * this process, and inherits its niceness and its network namespace. Null if there is no picture; `hiding` if the file must be changed first.
 */
export async function extractPicture(
  extraction: Extraction,
  path: string,
  task: Pick<ResizeTask, 'form' | 'maxPixels'>,
  memory: number,
): Promise<ExtractedPicture | Pick<HeifPictures, 'hiding'> | null> {
  const run: Run = (program, args) => runProgram(program, args, memory)
  switch (extraction.tool) {
    case 'ffmpeg':
      return extractFrame(run, extraction, path, task.maxPixels)
    case 'pdftoppm': {
      const { width, height, fit } = task.form
      const side = Math.min(Math.max(width, height) * (fit === 'cover' ? 2 : 1), maxPageSide)
      const page = ['-q', '-f', '1', '-l', '1', '-singlefile', '-scale-to', `${side}`, '-png', path]
      const bytes = await run(extraction.program, page)
      return bytes && { bytes, duration: null, hasOwnSize: false, isUpright: true }
    }
    case 'heif-convert': {
      const { hasAlpha, hiding } = await readHeifPictures(path)
      if (hiding.length > 0) return { hiding }
      // The program writes JPEG in a fourth of the time.
      const output = `${extraction.output}.${hasAlpha ? 'png' : 'jpg'}`
      const bytes = await run(...heifDecoding(extraction.program, '-q', '95', path, output))
      return bytes && { bytes, duration: null, hasOwnSize: true, isUpright: true }
    }
  }
}

/** The program and the arguments that run heif-convert, which writes to a link to the descriptor 3. */
export const heifDecoding = (program: string, ...args: readonly string[]): [string, readonly string[]] => [
  '/bin/sh',
  ['-c', throughPipe, 'sh', program, ...args],
]

type Run = (program: string, args: readonly string[]) => Promise<Uint8Array | null>

/** Reads nothing but this file, with this demuxer. References of the file to other files are not followed. */
const inputOf = ({ demuxer }: Extraction & { readonly tool: 'ffmpeg' }, path: string) => [
  ...['-f', demuxer],
  ...['-i', `file:${path}`],
]

async function extractFrame(
  run: Run,
  extraction: Extraction & { readonly tool: 'ffmpeg' },
  path: string,
  maxPixels: number,
): Promise<ExtractedPicture | null> {
  const input = inputOf(extraction, path)
  const common = ['-v', 'error', '-protocol_whitelist', 'file,pipe', '-max_pixels', `${maxPixels}`]
  const probed = await run(extraction.probe, [
    ...[...common, ...input, '-select_streams', 'v:0'],
    ...[
      '-show_entries',
      'format=duration:stream=codec_name,height,pix_fmt,color_space:stream_tags=alpha_mode',
    ],
    ...['-of', 'default=noprint_wrappers=1'],
  ])
  const { duration, decoder, hasAlpha, matrix } = parseProbe(
    probed === null ? '' : Buffer.from(probed).toString(),
  )
  const time = Math.min((duration ?? 0) / 10, maxFrameTime)
  const frameAt = (milliseconds: number, decoding = decoder, encoding = hasAlpha ? toPng : toJpeg) =>
    run(extraction.program, [
      ...['-nostdin', ...common, '-threads', '1', ...decoding],
      ...(milliseconds > 0 ? ['-ss', `${milliseconds / 1000}`] : []),
      ...[...input, '-map', '0:v:0', '-an', '-sn', '-dn', '-frames:v', '1'],
      // Pixels that are not square. Decoders of JPEG expect the matrix of BT.601, whatever that of the video is.
      ...[
        '-vf',
        `scale=w='min(4*iw,trunc(iw*sar))':h=ih:in_color_matrix=${matrix}:out_color_matrix=bt601,setsar=1`,
      ],
      ...['-threads', '1', '-f', 'image2pipe', ...encoding, '-'],
    ])
  const bytes =
    (await frameAt(time)) ??
    (time > 0 ? await frameAt(0) : null) ??
    // Without the library of this decoder.
    (decoder.length > 0 ? await frameAt(0, [], toJpeg) : null)
  return bytes && { bytes, duration, hasOwnSize: true, isUpright: true }
}

const toJpeg = ['-c:v', 'mjpeg', '-q:v', '2']
const toPng = ['-c:v', 'png', '-compression_level', '1', '-pix_fmt', 'rgba']

/** Decoders that read the transparency of a codec, which the built-in ones ignore. */
const alphaDecoders: ReadonlyMap<string, readonly string[]> = new Map([
  ['vp8', ['-c:v', 'libvpx']],
  ['vp9', ['-c:v', 'libvpx-vp9']],
])

/** Names of pixel formats with transparency. */
const alphaFormats = /^(yuva|rgba|argb|abgr|bgra|gbrap|ya8|ya16|pal8)/

/** The least height for which players use the matrix of BT.709 if the video states none. */
const minHeightOfHd = 720

/** What ffprobe prints, as lines of a name and a value. The duration is in milliseconds, or null if there is none. */
function parseProbe(text: string) {
  const fieldOf = (name: string) => new RegExp(`^${name}=(.*)$`, 'm').exec(text)?.[1] ?? ''
  const seconds = Number.parseFloat(fieldOf('duration'))
  const decoder = fieldOf('TAG:alpha_mode') === '1' ? (alphaDecoders.get(fieldOf('codec_name')) ?? []) : []
  return {
    duration: seconds >= 0 && seconds < 1e9 ? Math.round(seconds * 1000) : null,
    decoder,
    hasAlpha: decoder.length > 0 || alphaFormats.test(fieldOf('pix_fmt')),
    // The name of a matrix for ffmpeg, which uses that of BT.601 for every height if none is stated.
    matrix:
      fieldOf('color_space') === 'unknown' && Number(fieldOf('height')) >= minHeightOfHd ? 'bt709' : 'auto',
  }
}

/** What a program writes to its standard output; null if that is nothing, or too much. */
async function runProgram(
  program: string,
  args: readonly string[],
  memory: number,
): Promise<Uint8Array | null> {
  const child = startProgram(program, args, memory)
  const chunks: Buffer[] = []
  let size = 0
  child.stdout.on('data', (chunk: Buffer) => {
    size += chunk.byteLength
    if (size > maxOutput) child.kill('SIGKILL')
    else chunks.push(chunk)
  })
  await ended(child)
  return size === 0 || size > maxOutput ? null : Buffer.concat(chunks)
}

/**
 * The hash of what a program writes to its standard output; null if that is nothing, or the program fails. Throws ProgramTimeout after
 * `timeout` milliseconds, and ProgramLost if the system does not run it to its end.
 */
export async function digestOutput(
  program: string,
  args: readonly string[],
  { memory, timeout }: { readonly memory: number; readonly timeout: number },
): Promise<string | null> {
  const child = startProgram(program, args, memory)
  let isLate = false
  const timer = setTimeout(() => {
    isLate = child.kill('SIGKILL')
  }, timeout)
  const hash = createHash('sha256')
  let size = 0
  child.stdout.on('data', (chunk: Buffer) => {
    size += chunk.byteLength
    hash.update(chunk)
  })
  const code = await ended(child)
  clearTimeout(timer)
  if (isLate) throw new ProgramTimeout(`${program} has not ended in time`)
  // No process could be started, or the system needed its memory. That says nothing about the file.
  if (child.pid === undefined || child.signalCode === 'SIGKILL') throw new ProgramLost(`${program} was ended`)
  return size === 0 || code !== 0 ? null : hash.digest('hex')
}

class ProgramLost extends Error {
  override readonly name = 'ProgramLost'
}

export class ProgramTimeout extends Error {
  override readonly name = 'ProgramTimeout'
}

/**
 * Starts a program that cannot write files, gain privileges or use more memory than this. The memory is what it may write (`--data`). The
 * address space is larger, because threads reserve parts of it that they do not use: a limit of it makes heif-convert wait for a thread
 * that has failed, in half of the conversions of a picture of 12 megapixels.
 */
function startProgram(program: string, args: readonly string[], memory: number) {
  const limits = [
    ...['--fsize=0', '--core=0', `--cpu=${maxCpu}`],
    ...[`--data=${memory}`, `--as=${memory + reservedSpace}`, '--'],
  ]
  const privileges = ['--no-new-privs', ...endWithParent]
  return spawn('/usr/bin/prlimit', [...limits, setpriv, ...privileges, program, ...args], {
    cwd: '/',
    env: {},
    stdio: ['ignore', 'pipe', 'ignore'],
  })
}

/** The exit code; null if the program could not be started, or a signal has ended it. */
const ended = (child: ChildProcess): Promise<number | null> =>
  new Promise((resolve) => {
    child.once('error', () => resolve(null))
    child.once('close', resolve)
  })

/** The pictures of a HEIF file (ISO 23008-12), as far as heif-convert must be guided. */
export interface HeifPictures {
  readonly hasAlpha: boolean
  /** Positions of bytes, and their values that hide all pictures but the primary one: heif-convert writes each picture that is not hidden. */
  readonly hiding: readonly HidingByte[]
}

const none: HeifPictures = { hasAlpha: false, hiding: [] }

/** Bytes of the list. */
const maxList = 16 * 1024 * 1024

/** Items that are no pictures. */
const otherKinds: ReadonlySet<string> = new Set(['Exif', 'mime', 'uri '])

/** References by which an item is a part of another one, and no picture of its own: thumbnails, and masks such as alpha and depth. */
const partReferences: ReadonlySet<string> = new Set(['thmb', 'auxl'])

/** What says that a mask is transparency (`auxC`). */
const alphaNames = ['urn:mpeg:mpegB:cicp:systems:auxiliary:alpha', 'urn:mpeg:hevc:2015:auxid:1\0']

/** Reads the list of pictures. A file of another form has nothing to hide; heif-convert decides whether it is readable. */
async function readHeifPictures(path: string): Promise<HeifPictures> {
  try {
    return await withFile(path, async (source) => {
      const list = await findList(source)
      return list === null ? none : readList(await loadBox(source, list, maxList), list)
    })
  } catch (error) {
    if (error instanceof UnreadableFile || error instanceof RangeError) return none
    throw error
  }
}

async function findList(source: ByteSource): Promise<Box | null> {
  for (let position = 0; position < source.size; ) {
    const header = await source.read(position, Math.min(16, source.size - position))
    const box = boxAt(header, position, source.size)
    if (box === null || box.type === 'meta') return box
    position = box.end
  }
  return null
}

function readList(loaded: LoadedBoxes, list: Box): HeifPictures {
  const boxes = new Map(childrenOf(loaded, list, 4).map((box) => [box.type, box]))
  const [primary, information, references, properties] = ['pitm', 'iinf', 'iref', 'iprp'].map((type) =>
    boxes.get(type),
  )
  if (!primary || !information) return none
  const primaryId = readId(dataOf(loaded, primary))
  const parts = references ? readParts(loaded, references) : new Set()
  const hiding: HidingByte[] = []
  for (const box of childrenOf(loaded, information, dataOf(loaded, information)[0] === 0 ? 6 : 8)) {
    const entry = dataOf(loaded, box)
    const [version = 0, , , flags = 0] = entry
    if (box.type !== 'infe' || version < 2) continue
    const idSize = version === 2 ? 2 : 4
    const id = entry.readUIntBE(4, idSize)
    const kind = entry.toString('latin1', 4 + idSize + 2, 4 + idSize + 6)
    const isHidden = (flags & 1) === 1
    if (id === primaryId || isHidden || parts.has(id) || otherKinds.has(kind)) continue
    hiding.push({ position: box.data + 3, value: flags | 1 })
  }
  return { hasAlpha: properties !== undefined && hasAlpha(loaded, properties), hiding }
}

/** The id after the version and the flags of a box. */
const readId = (data: Buffer): number => data.readUIntBE(4, data[0] === 0 ? 2 : 4)

/** The items that are parts of others. */
function readParts(loaded: LoadedBoxes, references: Box): ReadonlySet<number> {
  const idSize = dataOf(loaded, references)[0] === 0 ? 2 : 4
  return new Set(
    childrenOf(loaded, references, 4)
      .filter(({ type }) => partReferences.has(type))
      .map((box) => dataOf(loaded, box).readUIntBE(0, idSize)),
  )
}

function hasAlpha(loaded: LoadedBoxes, properties: Box): boolean {
  const list = childOf(loaded, properties, 'ipco')
  const masks = list === null ? [] : childrenOf(loaded, list).filter(({ type }) => type === 'auxC')
  return masks.some((box) => alphaNames.some((name) => dataOf(loaded, box).includes(name)))
}

// The decoder visits all directories of a TIFF file each time it opens it, about 40,000 in a second. Only the first one is shown.

/** Directories that the decoder may visit. */
const maxVisited = 1_000

/** Tags of the width, the height and the orientation. */
const [widthTag, heightTag, orientationTag] = [256, 257, 274]

/** The size of the first picture of a TIFF file, as it is displayed; null for other files. Throws UnreadableFile. */
export const measureTiff = (picture: PictureSource): Promise<PictureSize | null> =>
  reading(picture, async (source) => {
    const format = await readFormat(source)
    const { entries } = await readDirectory(source, format, format.first)
    const numberOf = async (tag: number) => {
      const entry = entries.find((each) => each.tag === tag)
      return entry && (await readNumbers(source, format, entry, 1))[0]
    }
    const [width, height] = [await numberOf(widthTag), await numberOf(heightTag)]
    if (!width || !height) throw new UnreadableFile('a picture without a size')
    const orientation = (await numberOf(orientationTag)) ?? 1
    // The others exchange rows and columns.
    const isUpright = orientation < 5 || orientation > 8
    return isUpright ? { width, height } : { width: height, height: width }
  })

/** The same picture, or the bytes of its file without the other directories if they are so many that the decoder must not visit them. */
export async function withoutManyDirectories(picture: PictureSource): Promise<PictureSource> {
  const end = await reading(picture, findManyDirectories).catch(nullIfUnreadable)
  if (end === null) return picture
  const bytes = typeof picture === 'string' ? await readFile(picture) : Buffer.from(picture)
  return bytes.fill(0, end.position, end.position + end.size)
}

/** Compressions that the decoder knows: none, those of fax, LZW, JPEG, deflate, PackBits, and some old ones. */
const knownCompressions: ReadonlySet<number> = new Set([
  ...[1, 2, 3, 4, 5, 7, 8, 32766, 32771, 32773, 32809, 32946, 34676, 34677],
])
/** Numbers of bits of a sample that the decoder knows. */
const knownDepths: ReadonlySet<number> = new Set([1, 2, 4, 8, 16, 32])
/** CIELab, ICCLab and ITULab. */
const labColours: ReadonlySet<number> = new Set([8, 9, 10])

/** Whether a picture that the decoder does not read is a TIFF file of a form that it does not know, such as Zstandard or Lab. */
export async function isUnknownTiff(picture: PictureSource): Promise<boolean> {
  const isUnknown = async (source: ByteSource) => {
    const format = await readFormat(source)
    const { entries } = await readDirectory(source, format, format.first)
    const number = async (tag: number): Promise<number> => {
      const entry = entries.find((each) => each.tag === tag)
      return (entry && (await readNumbers(source, format, entry, 1))[0]) ?? 1
    }
    const [depth, compression, colours] = [await number(258), await number(259), await number(262)]
    return !knownDepths.has(depth) || !knownCompressions.has(compression) || labColours.has(colours)
  }
  return (await reading(picture, isUnknown).catch(nullIfUnreadable)) ?? false
}

/** Where the first directory refers to the next one; null if few follow. */
async function findManyDirectories(source: ByteSource) {
  const format = await readFormat(source)
  const { entry, count, pointer } = sizesOf(format)
  const first = await readDirectory(source, format, format.first)
  let directory: TiffDirectory = first
  for (let visited = 1; visited < maxVisited; visited += 1) {
    if (directory.next === 0) return null
    directory = await readDirectory(source, format, directory.next)
  }
  return { position: format.first + count + first.entries.length * entry, size: pointer }
}

/** The decoder stops at such a directory too. */
function nullIfUnreadable(error: unknown): null {
  if (error instanceof UnreadableFile || error instanceof RangeError) return null
  throw error
}

async function reading<T>(
  picture: PictureSource,
  work: (source: ByteSource) => Promise<T>,
): Promise<T | null> {
  const workIfTiff = async (source: ByteSource) => {
    if (source.size < 8) return null
    const start = (await source.read(0, 4)).toString('latin1')
    return /^(II[*+]\0|MM\0[*+])/.test(start) ? work(source) : null
  }
  if (typeof picture === 'string') return withFile(picture, workIfTiff)
  const part = async (position: number, length: number) => picture.subarray(position, position + length)
  return workIfTiff(createByteSource(picture.byteLength, part, picture.byteLength))
}
