import type { NamedFile } from './upload-queue.ts'

/** What an upload zone reports. */
export interface UploadZoneHandlers {
  /** Files that were dropped or pasted, those of folders with their paths. */
  readonly onFiles: (files: readonly NamedFile[]) => void
  /** Files that were dropped or pasted although `accept` excludes them. */
  readonly onRefused?: ((files: readonly NamedFile[]) => void) | undefined
  /** Whether files are dragged over the zone. */
  readonly onOver: (isOver: boolean) => void
}

export interface UploadZoneOptions {
  /** As the attribute of `<input type="file">`: `image/*,.pdf`. */
  readonly accept?: string | undefined
  /** Whether several files are accepted. */
  readonly multiple: boolean
  /** Whether files may be dropped and pasted anywhere on the page. */
  readonly wholePage: boolean
}

/** Accepts files that are dropped on an element, or pasted while the focus is in it. Returns a function that ends this. */
export function watchUploadZone(
  zone: HTMLElement,
  options: UploadZoneOptions,
  handlers: UploadZoneHandlers,
): () => void {
  const target: HTMLElement | Document = options.wholePage ? zone.ownerDocument : zone
  /** `dragenter` and `dragleave` fire for each element below the pointer; the zone is left when they are in balance. */
  let depth = 0
  const receive = async (transfer: DataTransfer) => {
    const found = await transferredFiles(transfer)
    const [accepted, refused]: [NamedFile[], NamedFile[]] = [[], []]
    for (const one of found) {
      const isRoom = options.multiple || accepted.length === 0
      if (isRoom && isAccepted(options.accept, one.file)) accepted.push(one)
      else refused.push(one)
    }
    if (refused.length > 0) handlers.onRefused?.(refused)
    if (accepted.length > 0) handlers.onFiles(accepted)
  }
  const onDrag = (event: Event) => {
    if (!(event instanceof DragEvent) || !hasFiles(event.dataTransfer)) return
    // Otherwise the browser opens the dropped file in place of the page.
    event.preventDefault()
    if (event.type === 'dragenter') depth += 1
    if (event.type === 'dragleave') depth = Math.max(0, depth - 1)
    if (event.type === 'drop') depth = 0
    handlers.onOver(depth > 0)
    if (event.type === 'drop' && event.dataTransfer) void receive(event.dataTransfer)
  }
  const onPaste = (event: Event) => {
    if (!(event instanceof ClipboardEvent) || !hasFiles(event.clipboardData) || pastesText(event)) return
    event.preventDefault()
    if (event.clipboardData) void receive(event.clipboardData)
  }
  const listeners: [string, (event: Event) => void][] = [
    ...['dragenter', 'dragleave', 'dragover', 'drop'].map((type): [string, (event: Event) => void] => [
      type,
      onDrag,
    ]),
    ['paste', onPaste],
  ]
  for (const [type, listener] of listeners) target.addEventListener(type, listener)
  return () => {
    for (const [type, listener] of listeners) target.removeEventListener(type, listener)
    // The end of the drag is not noticed any more.
    if (depth > 0) handlers.onOver(false)
  }
}

/** Whether a paste inserts a text into a field. Office programs add a picture of the text, which is not meant then. */
export const pastesText = ({ clipboardData, target }: ClipboardEvent): boolean =>
  clipboardData?.types.includes('text/plain') === true &&
  target instanceof Element &&
  target.matches(':read-write')

const hasFiles = (transfer: DataTransfer | null): boolean => transfer?.types.includes('Files') ?? false

/** Whether a file matches the attribute `accept` of an `<input type="file">`, which browsers do not apply to drops. */
export function isAccepted(accept: string | undefined, { name, type }: File): boolean {
  const patterns = (accept ?? '').split(',').map((pattern) => pattern.trim().toLowerCase())
  const [lowerName, lowerType] = [name.toLowerCase(), type.toLowerCase()]
  return (
    patterns.every((pattern) => pattern === '') ||
    patterns.some((pattern) => {
      if (pattern.startsWith('.')) return lowerName.endsWith(pattern)
      return pattern.endsWith('/*')
        ? lowerType.startsWith(pattern.slice(0, -1))
        : lowerType === pattern && pattern !== ''
    })
  )
}

/** The files of a drop or a paste, folders included. It reads the entries at once: browsers empty them after the event. */
async function transferredFiles(transfer: DataTransfer): Promise<readonly NamedFile[]> {
  const sources = [...transfer.items]
    .filter(({ kind }) => kind === 'file')
    .map((item) => ({ entry: item.webkitGetAsEntry?.() ?? null, file: item.getAsFile() }))
  const found = await Promise.all(
    sources.map(async ({ entry, file }) => {
      if (entry && isDirectory(entry)) return await readable(entry, filesIn(entry))
      return file === null ? [] : [{ file, filename: file.name }]
    }),
  )
  return found.flat()
}

/** The files of a folder and of those in it, with their paths. */
async function filesIn(folder: FileSystemDirectoryEntry): Promise<readonly NamedFile[]> {
  const reader = folder.createReader()
  const entries: FileSystemEntry[] = []
  // A reader returns its entries in batches, and an empty batch at the end.
  for (;;) {
    const batch = await new Promise<FileSystemEntry[]>((resolve, reject) =>
      reader.readEntries(resolve, reject),
    )
    if (batch.length === 0) break
    entries.push(...batch)
  }
  const found: NamedFile[] = []
  for (const entry of entries) {
    if (isDirectory(entry)) found.push(...(await readable(entry, filesIn(entry))))
    else if (isFile(entry)) found.push(...(await readable(entry, fileOf(entry))))
  }
  return found
}

async function fileOf(entry: FileSystemFileEntry): Promise<readonly NamedFile[]> {
  const file = await new Promise<File>((resolve, reject) => entry.file(resolve, reject))
  return [{ file, filename: pathOf(entry) }]
}

/** What cannot be read, because it was removed or belongs to somebody else, is left out, and is an `error` event of the window. */
const readable = (
  entry: FileSystemEntry,
  found: Promise<readonly NamedFile[]>,
): Promise<readonly NamedFile[]> =>
  found.catch((cause: unknown) => {
    reportError(new Error(`${pathOf(entry)} cannot be read: ${String(cause)}`, { cause }))
    return []
  })

const pathOf = ({ fullPath }: FileSystemEntry): string => fullPath.replace(/^\//, '')

const isFile = (entry: FileSystemEntry): entry is FileSystemFileEntry => entry.isFile
const isDirectory = (entry: FileSystemEntry): entry is FileSystemDirectoryEntry => entry.isDirectory

/** The files that were chosen with an `<input type="file">`, those of a folder with their paths. */
export const namedFiles = ({ files }: HTMLInputElement): readonly NamedFile[] =>
  [...(files ?? [])].map((file) => ({ file, filename: file.webkitRelativePath || file.name }))
