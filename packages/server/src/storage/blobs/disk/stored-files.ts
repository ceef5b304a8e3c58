import { closeSync, constants, fstatSync, openSync, read } from 'node:fs'
import { basename, join } from 'node:path'
import { errorCode, Fault } from '../../../core/faults.ts'
import { BlobTruncatedError, type OpenBlob } from '../blobs.ts'
import { shareContent, streamRange } from '../memory-blob.ts'
import { entryTypeAt, type Files, ForeignEntry, nodeFiles } from './files.ts'

/** Where a file of the store is: at `root`/`shard`/`name`. */
export interface StoredFile {
  readonly root: string
  readonly shard: string
  readonly name: string
}

/** Throws ForeignEntry if it is not a directory: for a directory whose content the service protects. */
export function requireOwnDirectory(path: string, files: Pick<Files, 'lstat'> = nodeFiles): void {
  if (entryTypeAt(files, path) !== 'directory')
    throw new ForeignEntry(
      `${path} must be a directory, not a link or a file. The service cannot protect ${basename(path)} in another place.`,
    )
}

/** False if there is nothing. Throws ForeignEntry if it is not a directory. */
export function isOwnDirectory(path: string): boolean {
  const found = entryTypeAt(nodeFiles, path)
  if (found !== 'nothing' && found !== 'directory') throw new ForeignEntry(`${path} is not a directory`)
  return found === 'directory'
}

/** A file that must be there for another one to be served. Bytes. */
export interface RequiredFile extends StoredFile {
  readonly size: number
}

/** Whether it is a regular file of its size. False also for links, for links in its path, and if the disk fails. */
export function isStored({ root, shard, name, size }: RequiredFile): boolean {
  const directory = join(root, shard)
  try {
    if (!isOwnDirectory(root) || !isOwnDirectory(directory)) return false
    const status = nodeFiles.lstat(join(directory, name))
    return status?.isFile() === true && status.size === size
  } catch {
    return false
  }
}

// O_NONBLOCK: opening a named pipe would block. It has no effect on regular files.
const flags = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK

/** Null if the file or its directory does not exist. Throws Fault `media-unknown` for a foreign entry (docs/interface.md B8). */
export async function openStoredFile(
  path: string,
  directoryExists: () => Promise<boolean>,
): Promise<OpenBlob | null> {
  try {
    return (await directoryExists()) ? toBlob(openRegularFile(path), path) : null
  } catch (error) {
    throw hideForeignEntry(error)
  }
}

/** Returns Fault `media-unknown` for a foreign entry, which is not revealed (docs/interface.md B8), and other errors unchanged. */
export const hideForeignEntry = (error: unknown): unknown =>
  error instanceof ForeignEntry
    ? new Fault('media-unknown', 'There is no such item.', { cause: error })
    : error

/** A file that is open for reading. */
export interface FileDescriptor {
  readonly descriptor: number
  readonly size: number
}

/** Null if the file does not exist. Throws ForeignEntry if it is not a regular file. */
export function openRegularFile(path: string): FileDescriptor | null {
  const descriptor = openDescriptor(path)
  if (descriptor === null) return null
  try {
    const status = fstatSync(descriptor)
    if (!status.isFile()) throw new ForeignEntry(`${path} is not a regular file`)
    return { descriptor, size: status.size }
  } catch (error) {
    closeSync(descriptor)
    throw error
  }
}

export function toBlob(file: FileDescriptor | null, path: string): OpenBlob | null {
  if (file === null) return null
  const { descriptor, size } = file
  const content = { type: 'file', path } as const
  let reading: Promise<void> | null = null
  let closing: Promise<void> | null = null

  // The number of a closed descriptor may be reused, so a read in progress must end first.
  const closeAfterRead = async (): Promise<void> => {
    await reading?.catch(() => undefined)
    closeSync(descriptor)
  }

  const blob: OpenBlob = {
    size,
    content,
    share: async () => shareContent(content),
    read(into, position) {
      if (closing) throw new Error('read after close')
      reading = readWhole(descriptor, into, position)
      return reading
    },
    stream: (start, end) => streamRange(blob, start, end),
    close() {
      closing ??= closeAfterRead()
      return closing
    },
  }
  return blob
}

function openDescriptor(path: string): number | null {
  try {
    return openSync(path, flags)
  } catch (error) {
    const code = errorCode(error)
    if (code === 'ENOENT') return null
    if (code === 'ELOOP' || code === 'ENXIO') throw new ForeignEntry(`${path} is not a regular file`)
    throw error
  }
}

/** Fills `into` with the bytes from `position` on. Rejects if the file ends first. */
export function readWhole(descriptor: number, into: Uint8Array, position: number): Promise<void> {
  return new Promise((resolve, reject) => {
    const readFrom = (done: number): void =>
      read(descriptor, into, done, into.byteLength - done, position + done, (error, bytesRead) => {
        if (error) reject(error)
        else if (bytesRead === 0) reject(new BlobTruncatedError('a blob ended before its size'))
        else if (done + bytesRead < into.byteLength) readFrom(done + bytesRead)
        else resolve()
      })
    if (into.byteLength > 0) readFrom(0)
    else resolve()
  })
}
