/**
 * The files of a drop or a paste, those in folders included. Must be called while the event is handled: the entries are
 * out of reach afterwards, though reading them may take its time.
 */
export function droppedFiles(transfer: DataTransfer): Promise<File[]> {
  const items = [...transfer.items].filter((item) => item.kind === 'file')
  const entries = items.map((item) => item.webkitGetAsEntry?.() ?? null)
  const files = items.map((item) => item.getAsFile())
  return Promise.all(
    entries.map((entry, index) => (entry?.isDirectory ? filesOf(entry) : filesOfOne(files[index] ?? null))),
  ).then((found) => found.flat())
}

const filesOfOne = async (file: File | null): Promise<File[]> => (file ? [file] : [])

/** What cannot be read (a link to nowhere, a folder without permission) is passed over. */
async function filesOf(entry: FileSystemEntry): Promise<File[]> {
  if (isFile(entry)) {
    return await new Promise((resolve) =>
      entry.file(
        (file) => resolve([file]),
        () => resolve([]),
      ),
    )
  }
  if (!isDirectory(entry)) return []
  const inside = await entriesIn(entry.createReader())
  return (await Promise.all(inside.map(filesOf))).flat()
}

/** A reader hands out a part at a time (a hundred in Chromium), and nothing when it is at its end. */
async function entriesIn(reader: FileSystemDirectoryReader): Promise<FileSystemEntry[]> {
  const all: FileSystemEntry[] = []
  for (;;) {
    const part = await new Promise<FileSystemEntry[]>((resolve) =>
      reader.readEntries(resolve, () => resolve([])),
    )
    if (part.length === 0) return all
    all.push(...part)
  }
}

const isFile = (entry: FileSystemEntry): entry is FileSystemFileEntry => entry.isFile
const isDirectory = (entry: FileSystemEntry): entry is FileSystemDirectoryEntry => entry.isDirectory
