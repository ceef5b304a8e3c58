import { randomUUID } from 'node:crypto'
import { constants, type Stats } from 'node:fs'
import { type FileHandle, lstat, mkdir, open, rename, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { CommandError } from './command.ts'

// Every file that a command writes is opened here, except that of `get -o`, which the user names: regular files only, through no link, and
// new ones exclusively. Somebody else may have put a link, a FIFO or a device at any path.

const { O_APPEND, O_CREAT, O_DIRECTORY, O_EXCL, O_NOFOLLOW, O_NONBLOCK, O_RDONLY, O_WRONLY } = constants

/** Opening a FIFO without O_NONBLOCK waits for its other end. Windows has neither flag. */
const guarded = O_NOFOLLOW | O_NONBLOCK

/** Creates a file, for writing. Fails with EEXIST if the path has anything, also a link to nothing. */
export const createRegular = (path: string, mode = 0o666): Promise<FileHandle> =>
  open(path, O_WRONLY | O_APPEND | O_CREAT | O_EXCL | O_NOFOLLOW, mode)

/**
 * Opens a file that exists, to read it or to append to it. Throws CommandError for a link, a FIFO, a device, and a file with a further name (a
 * hard link), which may be outside of the directory.
 */
export async function openRegular(path: string, access: 'read' | 'append'): Promise<FileHandle> {
  // Before it is opened, because opening a device can have effects.
  requireRegular(path, await lstat(path))
  const file = await open(path, guarded | (access === 'read' ? O_RDONLY : O_WRONLY | O_APPEND))
  try {
    requireRegular(path, await file.stat())
    return file
  } catch (error) {
    await file.close()
    throw error
  }
}

/** Gives a file the permissions of the one that it replaces. File systems without permissions may refuse to change them. */
export async function keepMode(file: FileHandle, mode: number): Promise<void> {
  if (modeOf(await file.stat()) !== mode) await file.chmod(mode)
}

/** The permissions of a file. */
export const modeOf = ({ mode }: Stats): number => mode & 0o777

/** The permissions of a file until those of the one that it replaces are set. */
export const privateMode = 0o600

const isRegular = (found: Stats): boolean => found.isFile() && found.nlink <= 1

function requireRegular(path: string, found: Stats): void {
  if (!isRegular(found)) throw new CommandError(`${path} is a link or no regular file`)
}

/** Removes a link, a FIFO or a device, and a name of a file that has others. Fails for a directory. */
export async function removeIrregular(path: string): Promise<void> {
  const found = await lstat(path).catch(nullIfMissing)
  if (found !== null && !isRegular(found)) await rm(path)
}

/** Null if the file does not exist. */
export async function readRegular(path: string): Promise<string | null> {
  const file = await openRegular(path, 'read').catch(nullIfMissing)
  if (file === null) return null
  await using _ = file
  return await file.readFile('utf8')
}

/** Appends to a file, which is created with mode 0600 if it does not exist. */
export async function appendRegular(path: string, text: string, { flush = false } = {}): Promise<void> {
  const open = () => openRegular(path, 'append').catch(nullIfMissing)
  // Several calls at a time may create it.
  await using file =
    (await open()) ?? (await createRegular(path, 0o600).catch(nullIfExisting)) ?? (await open())
  if (file === null) throw new CommandError(`${path} is removed as soon as it is created`)
  await file.writeFile(text)
  if (flush) await file.datasync()
}

/** Replaces a whole file, with mode 0600, when the new one is complete. */
export async function replaceRegular(path: string, text: string | Iterable<string>): Promise<void> {
  const temporary = `${path}.${randomUUID()}.new`
  try {
    await using file = await createRegular(temporary, 0o600)
    await file.writeFile(text)
  } catch (error) {
    await rm(temporary, { force: true })
    throw error
  }
  await rename(temporary, path)
}

/** A directory whose files are written. */
export interface GuardedTree extends AsyncDisposable {
  /**
   * Calls `act` with a path at which a file below the directory can be opened, renamed or removed. `name` is the path below the directory, with
   * slashes. `creates` creates missing directories. Throws CommandError if a directory on the way is a link, which may lead outside.
   */
  readonly at: <T>(
    name: string,
    act: (path: string) => Promise<T>,
    options?: { readonly creates?: boolean },
  ) => Promise<T>
}

/**
 * Opens a directory, which may be a link itself. On Linux, files are found through open directories, so that a link that replaces one
 * during a write is not followed. On other systems, each directory is checked before its files are written.
 */
export async function openTree(root: string): Promise<GuardedTree> {
  const handle = process.platform === 'linux' ? await open(root, O_RDONLY | O_DIRECTORY) : null
  const anchor = handle && (await anchorOf(handle))
  const first = await stat(root)

  async function start(): Promise<string> {
    if (anchor !== null) return anchor
    const { ino, dev } = await stat(root)
    if (ino === first.ino && dev === first.dev) return root
    throw new CommandError(`${root} was replaced by another directory`)
  }

  return {
    async at(name, act, { creates = false } = {}) {
      const parts = name.split('/')
      if (parts.some((part) => part === '' || part === '.' || part === '..'))
        throw new CommandError(`${JSON.stringify(name)} is no path below ${root}`)
      const leaf = parts.pop() ?? ''
      await using opened = new AsyncDisposableStack()
      let [at, shown] = [await start(), root]
      try {
        for (const part of parts) {
          const path = join(at, part)
          const named = join(shown, part)
          if (creates) await mkdir(path).catch(ignoreExisting)
          const directory = await openDirectory(path, anchor !== null)
          at = directory === null ? path : ((await anchorOf(opened.use(directory))) ?? path)
          shown = named
        }
        return await act(join(at, leaf))
      } catch (error) {
        if (error instanceof Error) error.message = error.message.replaceAll(at, shown)
        throw error
      }
    },
    [Symbol.asyncDispose]: async () => await handle?.close(),
  }
}

/** Null without a handle. Throws CommandError for anything but a directory. */
async function openDirectory(path: string, hasHandle: boolean): Promise<FileHandle | null> {
  const isDirectory = (await lstat(path)).isDirectory()
  if (isDirectory && !hasHandle) return null
  try {
    if (isDirectory) return await open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW)
  } catch (error) {
    if (!isCode(error, 'ELOOP', 'ENOTDIR')) throw error
  }
  throw new CommandError(`${path} is no directory`)
}

/** A path that stays that of an open directory; null without /proc. */
async function anchorOf({ fd }: FileHandle): Promise<string | null> {
  const path = `/proc/self/fd/${fd}`
  const found = await stat(path).catch(() => null)
  return found?.isDirectory() === true ? path : null
}

const isCode = (error: unknown, ...codes: readonly string[]): boolean =>
  error instanceof Error && 'code' in error && codes.includes(String(error.code))

function ignoreExisting(error: unknown): void {
  if (!isCode(error, 'EEXIST')) throw error
}

function nullIfExisting(error: unknown): null {
  if (isCode(error, 'EEXIST')) return null
  throw error
}

export function nullIfMissing(error: unknown): null {
  if (isCode(error, 'ENOENT')) return null
  throw error
}
