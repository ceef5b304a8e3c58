import { byPath, type Chosen, type ChosenFile, withoutSystemFiles } from './chosen-files.ts'
import { isSystemFile } from './system-files.ts'

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
