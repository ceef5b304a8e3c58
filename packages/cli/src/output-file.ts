import { randomUUID } from 'node:crypto'
import { constants } from 'node:fs'
import { lstat, open, readlink, realpath, rename, rm, stat } from 'node:fs/promises'
import { basename, dirname, join, resolve } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { CommandError } from './command.ts'
import { keepMode, modeOf, privateMode } from './guarded-files.ts'

type Bytes = AsyncIterable<Uint8Array> | Iterable<Uint8Array>

/**
 * Checks the path of a download before anything is requested, and returns the function that writes it. A regular file is
 * replaced when the download is complete, and its permissions stay; links are followed; a FIFO or a device is written to. Throws CommandError.
 */
export async function downloadFile(
  path: string,
): Promise<(bytes: Bytes, signal: AbortSignal) => Promise<void>> {
  const target = await explained(path, () => followLinks(path))
  const found = await explained(path, () => statOrNull(target))
  if (found?.isDirectory())
    throw new CommandError(`${path} is a directory. Name a file in it: -o ${join(path, 'FILE')}`)
  if (found === null) await requireDirectory(path, dirname(target))
  return (bytes, signal) =>
    explained(path, () =>
      found === null || found.isFile()
        ? replaceFile(target, found && modeOf(found), bytes, signal)
        : writeInto(target, bytes, signal),
    )
}

/** The path behind links; the last one may lead to a file that does not exist yet. */
async function followLinks(path: string): Promise<string> {
  const found = await lstat(path).catch(() => null)
  if (!found?.isSymbolicLink()) return path
  if ((await statOrNull(path)) !== null) return await realpath(path)
  return await followLinks(resolve(dirname(path), await readlink(path)))
}

async function statOrNull(path: string) {
  return await stat(path).catch((error: unknown) => {
    if (codeOf(error) === 'ENOENT') return null
    throw error
  })
}

async function requireDirectory(path: string, directory: string): Promise<void> {
  if ((await explained(path, () => statOrNull(directory))) === null)
    throw new CommandError(`the directory ${directory} does not exist. Create it, or choose another one.`)
}

/** Writes a temporary file and renames it, so that an incomplete file never has the final name. */
async function replaceFile(
  file: string,
  mode: number | null,
  bytes: Bytes,
  signal: AbortSignal,
): Promise<void> {
  const part = join(dirname(file), `.${basename(file).slice(0, 100)}.${randomUUID()}.part`)
  try {
    await writePart(part, mode, bytes, signal)
    await rename(part, file)
  } catch (error) {
    await rm(part, { force: true })
    throw error
  }
}

async function writePart(
  part: string,
  mode: number | null,
  bytes: Bytes,
  signal: AbortSignal,
): Promise<void> {
  await using handle = await open(part, 'wx', mode === null ? undefined : privateMode)
  for await (const chunk of bytes) {
    signal.throwIfAborted()
    await handle.writeFile(chunk)
  }
  if (mode !== null) await keepMode(handle, mode)
  await handle.sync()
}

/** Without O_CREAT and O_TRUNC: the file exists, and is not a regular one. */
async function writeInto(file: string, bytes: Bytes, signal: AbortSignal): Promise<void> {
  const handle = await open(file, constants.O_WRONLY)
  await pipeline(bytes, handle.createWriteStream(), { signal })
}

/** Names the path of the user in an error of the file system, instead of a temporary file. */
async function explained<T>(path: string, act: () => Promise<T>): Promise<T> {
  try {
    return await act()
  } catch (error) {
    if (!(error instanceof Error && 'syscall' in error && 'path' in error)) throw error
    throw new CommandError(`${path} cannot be written (${codeOf(error)}). Choose another file.`)
  }
}

const codeOf = (error: unknown) => (error instanceof Error && 'code' in error ? error.code : null)
