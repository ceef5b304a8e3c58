import { readdir, stat } from 'node:fs/promises'
import { join } from 'node:path'

/** A file to send. */
export interface LocalFile {
  readonly path: string
  /** Bytes. */
  readonly size: number
}

/** What cannot be sent, and why. */
export interface LocalFault {
  readonly path: string
  readonly reason: string
}

/**
 * The files that the paths name, and those below directories: in the order of the paths, names within a directory in
 * the order of their UTF-16 code units, which is the same everywhere. Nothing is left out without a fault.
 */
export async function findFiles(
  paths: readonly string[],
): Promise<{ files: LocalFile[]; faults: LocalFault[] }> {
  const files: LocalFile[] = []
  const faults: LocalFault[] = []

  async function visit(path: string, isLink: boolean): Promise<void> {
    try {
      const found = await stat(path)
      if (found.isFile()) files.push({ path, size: found.size })
      else if (!found.isDirectory()) faults.push({ path, reason: 'is neither a file nor a directory' })
      // A link may lead back up, and then there would be no end.
      else if (isLink) faults.push({ path, reason: 'links to a directory; give that one itself' })
      else await visitDirectory(path)
    } catch (error) {
      faults.push({ path, reason: reasonOf(error) })
    }
  }

  async function visitDirectory(path: string): Promise<void> {
    const entries = await readdir(path, { withFileTypes: true })
    entries.sort((one, other) => (one.name < other.name ? -1 : 1))
    for (const entry of entries) await visit(join(path, entry.name), entry.isSymbolicLink())
  }

  for (const path of paths) await visit(path, false)
  return { files, faults }
}

function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  const code = 'code' in error ? error.code : null
  if (code === 'ENOENT' || code === 'ENOTDIR') return 'there is no such file'
  return code === 'EACCES' ? 'it may not be read by this user' : error.message
}
