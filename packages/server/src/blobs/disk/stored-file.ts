import { basename, join } from 'node:path'
import { entryTypeAt, ForeignEntry } from './entry-type.ts'
import { type Files, nodeFiles } from './files.ts'

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
