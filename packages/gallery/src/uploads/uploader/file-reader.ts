import { strings } from '../../strings.ts'
import type { UploadEntry } from '../upload-entry.ts'
import { maxFormFileSize, type ReadFile } from './form.ts'
import type { UploadList } from './upload-list.ts'

/** Reads files from the disk. A file that changed or is gone is read again where the browser can do that, and fails otherwise. */
export interface FileReader {
  /** The bytes of those that can be read; the others have failed. */
  read(entries: readonly UploadEntry[]): Promise<readonly ReadFile[]>
  /** Starts to read files that will be wanted next. */
  prefetch(entries: readonly UploadEntry[]): void
  /** The file, if its bytes can be read at this moment; null when the entry has failed. */
  usable(entry: UploadEntry): Promise<File | null>
}

/** `onChanged` is called with an entry whose file is no longer the one that was chosen. */
export function createFileReader(list: UploadList, onChanged: (entry: UploadEntry) => void): FileReader {
  let ahead = new Map<UploadEntry, Promise<Uint8Array | null>>()

  async function bytesOf(entry: UploadEntry): Promise<Uint8Array | null> {
    const read = (file: File | null) => file?.arrayBuffer().catch(() => null)
    const buffer = await read(entry.file)
    if (buffer) return new Uint8Array(buffer)
    const again = await refreshed(entry)
    if (entry.size > maxFormFileSize) return new Uint8Array(0)
    const fresh = (await read(again)) ?? null
    return fresh && new Uint8Array(fresh)
  }

  /** The file as it is on the disk now. */
  async function refreshed(entry: UploadEntry): Promise<File | null> {
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
      const started = entries.map((entry) => ahead.get(entry) ?? bytesOf(entry))
      ahead = new Map()
      const files: ReadFile[] = []
      for (const [index, bytes] of (await Promise.all(started)).entries()) {
        const entry = entries[index]
        if (!entry || !list.get(entry.id)) continue
        if (bytes === null) fail(entry)
        // It grew; it is sent alone, after the others.
        else if (entry.size > maxFormFileSize) list.move(entry, 'waiting')
        else files.push({ entry, bytes })
      }
      return files
    },
    prefetch(entries) {
      ahead = new Map(entries.map((entry) => [entry, bytesOf(entry)]))
    },
    async usable(entry) {
      const { file } = entry
      const readable = await file
        ?.slice(0, 1)
        .arrayBuffer()
        .catch(() => null)
      if (file && readable) return file
      const again = await refreshed(entry)
      onChanged(entry)
      return again ?? fail(entry)
    },
  }
}
