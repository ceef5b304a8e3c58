import { isSystemFile } from './system-files.ts'

/** A file that was chosen, dropped or pasted. */
export interface ChosenFile {
  /** Null if it could not be read. */
  readonly file: File | null
  /** Its path within the chosen folder, ending with its name. */
  readonly path: string
  /** Reads the file's current version; null if the browser has no API for that. */
  readonly reread: (() => Promise<File>) | null
}

/** Paths that are not uploaded (docs/interface.md, G9). */
export interface Skipped {
  readonly system: readonly string[]
  readonly emptyFolders: readonly string[]
  readonly unreadableFolders: readonly string[]
}

/** The files of one choice or drop. Each path is either in `files` or in `skipped`. */
export interface Chosen {
  readonly files: readonly ChosenFile[]
  readonly skipped: Skipped
}

const nothingSkipped: Skipped = { system: [], emptyFolders: [], unreadableFolders: [] }

/** The files of a file input in the order chosen; those of a folder in the natural order of their paths. */
export function chosenByInput(files: readonly File[]): Chosen {
  const all = files.map((file): ChosenFile => {
    const path = file.webkitRelativePath || file.name
    return { file, path, reread: null }
  })
  const isFolder = files.some(({ webkitRelativePath }) => webkitRelativePath)
  return withoutSystemFiles(isFolder ? all.toSorted(byPath) : all, nothingSkipped)
}

export function withoutSystemFiles(files: readonly ChosenFile[], skipped: Skipped): Chosen {
  const [others, system]: [ChosenFile[], string[]] = [[], []]
  for (const file of files) {
    if (isSystemFile(file.path)) system.push(file.path)
    else others.push(file)
  }
  return { files: others, skipped: { ...skipped, system: [...skipped.system, ...system] } }
}

const collator = new Intl.Collator('en', { numeric: true })

/** Compares paths folder by folder in natural order: `img2` before `img10`. */
export function byPath(a: { readonly path: string }, b: { readonly path: string }): number {
  const [left, right] = [a.path.split('/'), b.path.split('/')]
  for (const [index, segment] of left.entries()) {
    const other = right[index]
    if (other === undefined) return 1
    if (segment !== other) return collator.compare(segment, other) || (segment < other ? -1 : 1)
  }
  return left.length - right.length
}
