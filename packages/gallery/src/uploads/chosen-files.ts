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

function withoutSystemFiles(files: readonly ChosenFile[], skipped: Skipped): Chosen {
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

/**
 * The files of a drop or a paste, folders included: in the order dropped, and within a folder in the natural order of the
 * paths. Call it in the event handler, because the entries are not available afterwards. `onFound` is called with the number
 * of files found so far.
 */
export function droppedFiles(transfer: DataTransfer, onFound: (count: number) => void): Promise<Chosen> {
  const items = [...transfer.items].filter((item) => item.kind === 'file')
  const sources = items.map((item) => ({ entry: item.webkitGetAsEntry?.() ?? null, file: item.getAsFile() }))
  return readAll(sources, onFound)
}

interface Source {
  readonly entry: FileSystemEntry | null
  readonly file: File | null
}

interface Found {
  readonly system: string[]
  readonly emptyFolders: string[]
  readonly unreadableFolders: string[]
  count: number
}

async function readAll(sources: readonly Source[], onFound: (count: number) => void): Promise<Chosen> {
  const found: Found = { system: [], emptyFolders: [], unreadableFolders: [], count: 0 }
  const files: ChosenFile[] = []
  for (const { entry, file } of sources) {
    if (entry && isDirectory(entry)) {
      files.push(...(await filesOfFolder(entry, found, onFound)).toSorted(byPath))
    } else if (file || entry) {
      const reread = entry && isFile(entry) ? () => fileOf(entry) : null
      files.push({ file, path: file?.name ?? entry?.name ?? '', reread })
    }
  }
  return withoutSystemFiles(files, found)
}

async function filesOfFolder(
  folder: FileSystemDirectoryEntry,
  found: Found,
  onFound: (count: number) => void,
): Promise<ChosenFile[]> {
  const path = pathOf(folder)
  if (isSystemFile(path)) {
    found.system.push(path)
    return []
  }
  onFound(found.count)
  let entries: FileSystemEntry[]
  try {
    entries = await entriesIn(folder.createReader())
  } catch {
    found.unreadableFolders.push(path)
    return []
  }
  if (entries.length === 0) found.emptyFolders.push(path)
  const files = await Promise.all(entries.filter(isFile).map(chosenOf))
  found.count += files.length
  onFound(found.count)
  // One folder at a time, so that few of a large tree are open at once.
  for (const inner of entries.filter(isDirectory)) {
    for (const file of await filesOfFolder(inner, found, onFound)) files.push(file)
  }
  return files
}

async function chosenOf(entry: FileSystemFileEntry): Promise<ChosenFile> {
  const reread = () => fileOf(entry)
  return { file: await reread().catch(() => null), path: pathOf(entry), reread }
}

const fileOf = (entry: FileSystemFileEntry): Promise<File> =>
  new Promise((resolve, reject) => entry.file(resolve, reject))

/** A reader returns its entries in batches (100 in Chromium), and an empty batch at the end. */
async function entriesIn(reader: FileSystemDirectoryReader): Promise<FileSystemEntry[]> {
  const all: FileSystemEntry[] = []
  for (;;) {
    const batch = await new Promise<FileSystemEntry[]>((resolve, reject) =>
      reader.readEntries(resolve, reject),
    )
    if (batch.length === 0) return all
    for (const entry of batch) all.push(entry)
  }
}

const pathOf = (entry: FileSystemEntry): string => entry.fullPath.replace(/^\//, '')
const isFile = (entry: FileSystemEntry): entry is FileSystemFileEntry => entry.isFile
const isDirectory = (entry: FileSystemEntry): entry is FileSystemDirectoryEntry => entry.isDirectory

/** Names of files and folders that operating systems create, in lower case. */
const names = new Set([
  '.ds_store',
  '.localized',
  '.fseventsd',
  '.spotlight-v100',
  '.temporaryitems',
  '.trashes',
  '.directory',
  '__macosx',
  'thumbs.db',
  'ehthumbs.db',
  'desktop.ini',
  '$recycle.bin',
  'system volume information',
  'icon\r',
])

/** Whether a path is, or is inside, a file or folder that an operating system created. */
export const isSystemFile = (path: string): boolean =>
  path.split('/').some((segment) => segment.startsWith('._') || names.has(segment.toLowerCase()))
