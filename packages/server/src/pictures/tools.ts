import { execFile } from 'node:child_process'
import { accessSync, constants, existsSync } from 'node:fs'
import { copyFile, open, rm, stat, symlink, writeFile } from 'node:fs/promises'
import { delimiter, join } from 'node:path'
import { Fault } from '../core/faults.ts'
import { demuxerFor, type PictureTool, toolFor, toolPackages } from '../core/variants.ts'
import type { LocalBytes } from '../storage/blobs/blobs.ts'
import { createTemporaryDirectory } from '../storage/temporary-directories.ts'
import type { Extraction } from './picture-task.ts'

/** The paths of the programs that are installed. */
export type InstalledTools = ReadonlyMap<PictureTool | 'ffprobe', string>

/** They limit the memory of a program, and let it write no file. Without them, no program is started. */
const requiredPrograms = ['/usr/bin/prlimit', '/usr/bin/setpriv']

export function findTools(searchPath: string): InstalledTools {
  if (process.platform !== 'linux' || !requiredPrograms.every((path) => existsSync(path))) return new Map()
  const directories = searchPath.split(delimiter).filter((directory) => directory.startsWith('/'))
  const found = (['ffmpeg', 'ffprobe', 'pdftoppm', 'heif-convert'] as const).flatMap((name) => {
    const path = directories.map((directory) => join(directory, name)).find(isExecutable)
    return path === undefined ? [] : [[name, path] as const]
  })
  const tools = new Map(found)
  // Both are in the same package.
  if (!tools.has('ffprobe')) tools.delete('ffmpeg')
  return tools
}

/**
 * What a program prints about its version and its libraries. Without such an option, heif-convert prints it with its usage and fails.
 * Rejects if the program cannot be started, or is killed.
 */
export const printedVersion = (tool: PictureTool, program: string): Promise<string> =>
  new Promise((resolve, reject) => {
    const args = [tool === 'ffmpeg' ? '-version' : '-v']
    execFile(program, args, { env: {}, timeout: 10_000 }, (error, output, errors) => {
      // A program that has exited has a number as its code.
      if (error !== null && typeof error.code !== 'number') reject(error)
      else resolve(output + errors)
    })
  })

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK)
    return true
  } catch {
    return false
  }
}

/** The names of the installed tools, without their helpers. */
export const toolNames = (tools: InstalledTools): ReadonlySet<PictureTool> =>
  new Set(toolList.filter((tool) => tools.has(tool)))

/** The Debian packages of the tools that are not installed. */
export const missingPackages = (tools: InstalledTools): readonly string[] =>
  toolList.filter((tool) => !tools.has(tool)).map((tool) => toolPackages[tool])

const toolList: readonly PictureTool[] = ['ffmpeg', 'pdftoppm', 'heif-convert']

/** How to get the picture of a file of this type; null if the type needs no program, or it is not installed. */
export function extractionFor(
  contentType: string,
  tools: InstalledTools,
  { output }: Pick<SourceFile, 'output'>,
): Extraction | null {
  const tool = toolFor(contentType)
  const program = tool === null ? undefined : tools.get(tool)
  if (tool === null || program === undefined) return null
  if (tool === 'pdftoppm') return { tool, program }
  if (tool === 'heif-convert') return { tool, program, output }
  const [probe, demuxer] = [tools.get('ffprobe'), demuxerFor(contentType)]
  return probe === undefined || demuxer === undefined ? null : { tool, program, probe, demuxer }
}

/** A byte of a file. */
interface Change {
  readonly position: number
  readonly value: number
}

/** A file that programs can read until it is released. */
export interface SourceFile {
  readonly path: string
  /** With `.jpg`, `.png` or `.y4m`, a link to the descriptor 3 of the process that opens it. */
  readonly output: string
  /** Returns a copy in which these bytes are changed; at most one. Throws Fault `variant-unavailable` if it would be too large, and `overloaded`. */
  copyWith(changes: readonly Change[]): Promise<string>
  release(): Promise<void>
}

/** Larger files are not copied. The pictures of a burst have some MB each. Bytes. */
const maxCopy = 64 * 1024 * 1024

/** Copies at a time. */
const maxCopies = 8
let copies = 0

/** The formats that a program derives from the name of its output. */
const outputExtensions = ['jpg', 'png', 'y4m']

/** The file of local bytes; bytes in memory are written to a temporary file. Throws Fault `overloaded` if that fails. */
export async function sourceFileOf({ content, release }: LocalBytes): Promise<SourceFile> {
  let directory: string | null = null
  let isCopied = false
  const remove = async () => {
    if (isCopied) copies -= 1
    try {
      if (directory !== null) await rm(directory, { recursive: true, force: true })
    } finally {
      await release()
    }
  }
  try {
    directory = await createTemporaryDirectory()
    const output = join(directory, 'picture')
    for (const extension of outputExtensions) await symlink('/proc/self/fd/3', `${output}.${extension}`)
    const path = content.type === 'file' ? content.path : join(directory, 'source')
    if (content.type === 'bytes') await writeFile(path, content.bytes, { mode: 0o600 })
    const copyWith = async (changes: readonly Change[]) => {
      if ((await stat(path)).size > maxCopy)
        throw new Fault(
          'variant-unavailable',
          'The file has several pictures and is too large to be decoded.',
        )
      if (copies >= maxCopies) throw cannotWrite(new Error('other copies are in use'))
      copies += 1
      isCopied = true
      return copyChanged(path, `${output}-copy`, changes)
    }
    return { path, output, copyWith, release: remove }
  } catch (error) {
    await remove()
    throw cannotWrite(error)
  }
}

async function copyChanged(from: string, to: string, changes: readonly Change[]): Promise<string> {
  try {
    await copyFile(from, to)
    const file = await open(to, 'r+')
    try {
      for (const { position, value } of changes) await file.write(Uint8Array.of(value), 0, 1, position)
    } finally {
      await file.close()
    }
    return to
  } catch (error) {
    throw cannotWrite(error)
  }
}

const cannotWrite = (cause: unknown) =>
  new Fault('overloaded', 'The service cannot write a temporary file.', { cause })
