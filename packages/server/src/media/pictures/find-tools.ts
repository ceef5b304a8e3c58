import { execFile } from 'node:child_process'
import { accessSync, constants, existsSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { demuxerFor, type PictureTool, toolFor, toolPackages } from '../../core/picture-tools.ts'
import type { Extraction } from './picture-task.ts'
import type { SourceFile } from './source-file.ts'

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
