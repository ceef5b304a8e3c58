import { readdir, stat } from 'node:fs/promises'
import { join } from 'node:path'

/** A file to send. */
export interface LocalFile {
  readonly path: string
  /** Bytes. */
  readonly size: number
  /** Changes with the file; as that of DiskFile. */
  readonly version: string
}

/** What cannot be sent, and why. */
export interface LocalFault {
  readonly path: string
  readonly reason: string
}

/** What the paths of a command lead to. */
export interface FoundFiles {
  readonly files: readonly LocalFile[]
  readonly faults: readonly LocalFault[]
  /** Paths of what operating systems put beside people's files. */
  readonly leftOut: readonly string[]
}

/** As people count: `2.jpg` before `10.jpg`. Of one locale, so that it is the same everywhere. */
const { compare } = new Intl.Collator('en', { numeric: true })

/** What macOS, Windows and NAS systems write beside people's files. */
const systemFile =
  /^(\.DS_Store|\._.*|\.localized|Icon\r|Thumbs\.db|ehthumbs\.db|ehthumbs_vista\.db|desktop\.ini)$/i
const systemDirectory =
  /^(\.Spotlight-V100|\.Trashes|\.fseventsd|\.TemporaryItems|\.DocumentRevisions-V100|__MACOSX|\$RECYCLE\.BIN|System Volume Information|@eaDir)$/i

/**
 * The files that the paths name, and those below directories: in the order of the paths, names within a directory in
 * natural order. Nothing is left out without a fault, but for the files of operating systems below directories.
 */
export async function findFiles(paths: readonly string[]): Promise<FoundFiles> {
  const files: LocalFile[] = []
  const faults: LocalFault[] = []
  const leftOut: string[] = []

  async function visit(path: string, isLink: boolean): Promise<void> {
    try {
      const found = await stat(path, { bigint: true })
      if (found.isFile())
        files.push({ path, size: Number(found.size), version: `${found.size} ${found.mtimeNs}` })
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
    entries.sort((one, other) => compare(one.name, other.name) || (one.name < other.name ? -1 : 1))
    for (const entry of entries) {
      const inside = join(path, entry.name)
      const isSystem = (entry.isDirectory() ? systemDirectory : systemFile).test(entry.name)
      if (isSystem) leftOut.push(inside)
      else await visit(inside, entry.isSymbolicLink())
    }
  }

  for (const path of paths) await visit(path, false)
  return { files, faults, leftOut }
}

function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  const code = 'code' in error ? error.code : null
  if (code === 'ENOENT' || code === 'ENOTDIR') return 'there is no such file'
  return code === 'EACCES' ? 'it may not be read by this user' : error.message
}
