import { type ChildProcess, spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import type { Extraction, ResizeTask } from './picture-task.ts'

/** The picture of a file of another type. */
interface ExtractedPicture {
  readonly bytes: Uint8Array
  /** Of a video, in milliseconds. */
  readonly duration: number | null
  /** Whether the pixels of the picture are those of the file. */
  readonly hasOwnSize: boolean
}

/** Bytes of the output of a program. */
const maxOutput = 128 * 1024 * 1024

const setpriv = '/usr/bin/setpriv'
const endWithParent = ['--pdeathsig', 'KILL', '--']

/** Runs a program that writes only to files: its output is a link to the descriptor 3 (source-file.ts), here a pipe. */
const throughPipe = `${setpriv} ${endWithParent.join(' ')} "$@" 3>&1 >/dev/null | exec cat`

/** Seconds of CPU time. The time limit of the task is shorter. */
const maxCpu = 300

/** The frame of a video is at a tenth of its duration, at most this many milliseconds after its start: many begin with a black frame. */
const maxFrameTime = 5_000

/** The largest side of a page, in pixels. */
const maxPageSide = 4_096

/**
 * Gets a picture from a file by a program that cannot write files, gain privileges or use more than `memory` bytes. The program ends with
 * this process, and inherits its niceness and its network namespace. Null if there is no picture.
 */
export async function extractPicture(
  extraction: Extraction,
  path: string,
  task: Pick<ResizeTask, 'form' | 'maxPixels'>,
  memory: number,
): Promise<ExtractedPicture | null> {
  const run: Run = (program, args) => runProgram(program, args, memory)
  switch (extraction.tool) {
    case 'ffmpeg':
      return extractFrame(run, extraction, path, task.maxPixels)
    case 'pdftoppm': {
      const { width, height, fit } = task.form
      const side = Math.min(Math.max(width, height) * (fit === 'cover' ? 2 : 1), maxPageSide)
      const page = ['-q', '-f', '1', '-l', '1', '-singlefile', '-scale-to', `${side}`, '-png', path]
      const bytes = await run(extraction.program, page)
      return bytes && { bytes, duration: null, hasOwnSize: false }
    }
    case 'heif-convert': {
      const bytes = await run(...heifDecoding(extraction.program, '-q', '95', path, extraction.output))
      return bytes && { bytes, duration: null, hasOwnSize: true }
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
    ...common,
    ...input,
    ...['-show_entries', 'format=duration', '-of', 'csv=print_section=0'],
  ])
  const duration = probed && parseDuration(Buffer.from(probed).toString())
  const time = Math.min((duration ?? 0) / 10, maxFrameTime)
  const frameAt = (milliseconds: number) =>
    run(extraction.program, [
      ...['-nostdin', ...common, '-threads', '1'],
      ...(milliseconds > 0 ? ['-ss', `${milliseconds / 1000}`] : []),
      ...[...input, '-map', '0:v:0', '-an', '-sn', '-dn', '-frames:v', '1'],
      // Pixels that are not square.
      ...['-vf', "scale=w='min(4*iw,trunc(iw*sar))':h=ih,setsar=1"],
      ...['-threads', '1', '-f', 'image2pipe', '-c:v', 'mjpeg', '-q:v', '2', '-'],
    ])
  const bytes = (await frameAt(time)) ?? (time > 0 ? await frameAt(0) : null)
  return bytes && { bytes, duration, hasOwnSize: true }
}

/** Milliseconds; null if the text is no duration. */
function parseDuration(text: string): number | null {
  const seconds = Number.parseFloat(text)
  return seconds >= 0 && seconds < 1e9 ? Math.round(seconds * 1000) : null
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
 * `timeout` milliseconds.
 */
export async function digestOutput(
  program: string,
  args: readonly string[],
  { memory, timeout = 0 }: { readonly memory: number; readonly timeout?: number },
): Promise<string | null> {
  const child = startProgram(program, args, memory)
  let isLate = false
  const timer = setTimeout(
    () => {
      isLate = child.kill('SIGKILL')
    },
    timeout || maxCpu * 1000,
  )
  const hash = createHash('sha256')
  let size = 0
  child.stdout.on('data', (chunk: Buffer) => {
    size += chunk.byteLength
    hash.update(chunk)
  })
  const code = await ended(child)
  clearTimeout(timer)
  if (isLate) throw new ProgramTimeout(`${program} has not ended in time`)
  return size === 0 || code !== 0 ? null : hash.digest('hex')
}

export class ProgramTimeout extends Error {
  override readonly name = 'ProgramTimeout'
}

/** Starts a program that cannot write files, gain privileges or use more memory than this. */
function startProgram(program: string, args: readonly string[], memory: number) {
  const limits = ['--fsize=0', '--core=0', `--as=${memory}`, `--cpu=${maxCpu}`, '--']
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
