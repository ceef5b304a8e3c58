import { strings } from '../../strings.ts'
import type { UploadEntry, UploadList } from './upload-list.ts'

/** A file whose bytes are in memory. */
export interface ReadFile {
  readonly entry: UploadEntry
  readonly bytes: Uint8Array
}

/** Larger files are resumable uploads. Bytes. */
export const maxFormFileSize = 1_048_576

/** Reads files. A file that changed is read again if the browser can (a drop); otherwise its entry fails (G10). */
export interface FileReader {
  /** Reads files into memory; entries whose file cannot be read fail. */
  read(entries: readonly UploadEntry[]): Promise<readonly ReadFile[]>
  /** Starts to read the next files. */
  prefetch(entries: readonly UploadEntry[]): void
  /** The file if it can be read now; otherwise the entry fails and this resolves with null. */
  readableFile(entry: UploadEntry): Promise<File | null>
}

/** `onChanged` is called when the file of an entry differs from the one that was chosen. */
export function createFileReader(list: UploadList, onChanged: (entry: UploadEntry) => void): FileReader {
  let prefetched = new Map<UploadEntry, Promise<Uint8Array | null>>()

  async function bytesOf(entry: UploadEntry): Promise<Uint8Array | null> {
    const read = (file: File | null) => file?.arrayBuffer().catch(() => null)
    const buffer = await read(entry.file)
    if (buffer) return new Uint8Array(buffer)
    const current = await reread(entry)
    if (entry.size > maxFormFileSize) return new Uint8Array(0)
    const fresh = (await read(current)) ?? null
    return fresh && new Uint8Array(fresh)
  }

  /** Replaces the file by its current version; null if the browser cannot read it. */
  async function reread(entry: UploadEntry): Promise<File | null> {
    const file = (await entry.reread?.().catch(() => null)) ?? null
    if (file === null || !list.get(entry.id)) return null
    list.update(entry, { file, size: file.size, modified: file.lastModified, contentType: file.type })
    return file
  }

  function fail(entry: UploadEntry): null {
    if (!list.get(entry.id)) return null
    entry.reason = entry.reread ? strings.uploads.unreadable : strings.uploads.changed
    list.update(entry, { sent: 0 })
    list.move(entry, 'failed')
    return null
  }

  return {
    async read(entries) {
      const started = entries.map((entry) => prefetched.get(entry) ?? bytesOf(entry))
      prefetched = new Map()
      const files: ReadFile[] = []
      for (const [index, bytes] of (await Promise.all(started)).entries()) {
        const entry = entries[index]
        if (!entry || !list.get(entry.id)) continue
        if (bytes === null) fail(entry)
        // It grew beyond the limit of forms; it becomes a resumable upload after the others.
        else if (entry.size > maxFormFileSize) list.move(entry, 'waiting')
        else files.push({ entry, bytes })
      }
      return files
    },
    prefetch(entries) {
      prefetched = new Map(entries.map((entry) => [entry, bytesOf(entry)]))
    },
    async readableFile(entry) {
      const { file } = entry
      const readable = await file
        ?.slice(0, 1)
        .arrayBuffer()
        .catch(() => null)
      if (file && readable) return file
      const current = await reread(entry)
      onChanged(entry)
      return current ?? fail(entry)
    },
  }
}
