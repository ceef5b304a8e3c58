import { type ChildProcess, spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { type HeifPictures, readHeifPictures } from './heif-pictures.ts'
import type { Extraction, ResizeTask } from './picture-task.ts'

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

/** Runs a program that writes only to files: its output is a link to the descriptor 3 (source-file.ts), here a pipe. */
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
    ...['-show_entries', 'format=duration:stream=codec_name,pix_fmt:stream_tags=alpha_mode'],
    ...['-of', 'default=noprint_wrappers=1'],
  ])
  const { duration, decoder, hasAlpha } = parseProbe(probed === null ? '' : Buffer.from(probed).toString())
  const time = Math.min((duration ?? 0) / 10, maxFrameTime)
  const frameAt = (milliseconds: number, decoding = decoder, encoding = hasAlpha ? toPng : toJpeg) =>
    run(extraction.program, [
      ...['-nostdin', ...common, '-threads', '1', ...decoding],
      ...(milliseconds > 0 ? ['-ss', `${milliseconds / 1000}`] : []),
      ...[...input, '-map', '0:v:0', '-an', '-sn', '-dn', '-frames:v', '1'],
      // Pixels that are not square.
      ...['-vf', "scale=w='min(4*iw,trunc(iw*sar))':h=ih,setsar=1"],
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

/** What ffprobe prints, as lines of a name and a value. The duration is in milliseconds, or null if there is none. */
function parseProbe(text: string) {
  const fieldOf = (name: string) => new RegExp(`^${name}=(.*)$`, 'm').exec(text)?.[1] ?? ''
  const seconds = Number.parseFloat(fieldOf('duration'))
  const decoder = fieldOf('TAG:alpha_mode') === '1' ? (alphaDecoders.get(fieldOf('codec_name')) ?? []) : []
  return {
    duration: seconds >= 0 && seconds < 1e9 ? Math.round(seconds * 1000) : null,
    decoder,
    hasAlpha: decoder.length > 0 || alphaFormats.test(fieldOf('pix_fmt')),
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
