import { openUnfinishedStore, type Unfinished } from '../unfinished-store.ts'
import type { UploadEntry, UploadList } from './upload-list.ts'

/** Saves unfinished uploads in the browser and finds those of closed pages. */
export interface SavedUploads {
  /** Saves entries in place of the records that they continue. */
  saveInstead(entries: readonly UploadEntry[], records: readonly Unfinished[]): void
  /** Saves resumable uploads, and updates entries that are saved already. */
  update(entries: readonly UploadEntry[]): void
  /** Saves everything at once, because the page is about to close. */
  saveNow(): void
  forget(entries: readonly UploadEntry[]): void
  /** Whether all unfinished uploads are saved with the content of their files. False once the browser's storage failed. */
  hasAll(): boolean
  /** The records of closed pages. */
  abandoned(): Promise<readonly Unfinished[]>
  close(): void
}

/** Uploads that finish sooner are not saved. Milliseconds. */
const saveAfter = 3000

/** Entries saved at a time, so that the page stays responsive. */
const batchSize = 200

/** `page` is the id of this page; `onSaved` is called after entries were saved. */
export function createSavedUploads(
  list: UploadList,
  bucket: string,
  page: string,
  onSaved: () => void,
): SavedUploads {
  const store = openUnfinishedStore(bucket, page)
  const openPages = createOpenPages(page)
  const timer = setInterval(() => saveOld(batchSize, saveAfter), 1000)
  let [writes, failed] = [0, false]

  function* unsaved(): Generator<UploadEntry> {
    for (const state of ['sending', 'waiting', 'paused', 'failed'] as const)
      for (const entry of list.in(state)) if (!entry.isSaved && !entry.isFinal && entry.file) yield entry
  }

  /** Saves up to `count` entries that were added at least `age` milliseconds ago. */
  function saveOld(count: number, age: number): void {
    const entries: UploadEntry[] = []
    for (const entry of unsaved()) {
      if (entries.length === count || Date.now() - entry.addedAt < age) break
      entries.push(entry)
    }
    if (entries.length > 0) save(entries)
  }

  function save(entries: readonly UploadEntry[], replaced: readonly string[] = []): void {
    for (const entry of entries) entry.isSaved = true
    void write(entries, replaced)
    // Only a resumable upload continues with a file that is chosen again, so only its content must be recognized.
    for (const entry of entries) if (entry.uploadId !== null && entry.sample === null) void addSample(entry)
  }

  async function write(entries: readonly UploadEntry[], replaced: readonly string[]): Promise<void> {
    writes++
    if (!(await store.put(entries, replaced))) failed = true
    writes--
    onSaved()
  }

  async function addSample(entry: UploadEntry): Promise<void> {
    entry.sample = entry.file ? await sampleHash(entry.file).catch(() => null) : null
    if (entry.sample !== null && list.get(entry.id)?.state !== 'done') await write([entry], [])
  }

  return {
    saveInstead(entries, records) {
      save(
        entries,
        records.map(({ id }) => id),
      )
    },
    update(entries) {
      const changed = entries.filter(({ isSaved, uploadId }) => isSaved || uploadId !== null)
      if (changed.length > 0) save(changed)
    },
    saveNow: () => saveOld(Number.POSITIVE_INFINITY, 0),
    forget(entries) {
      store.remove(entries.filter(({ isSaved }) => isSaved).map(({ id }) => id))
      for (const entry of entries) entry.isSaved = false
    },
    hasAll: () => !failed && writes === 0 && store.hasContents() && unsaved().next().done === true,
    async abandoned() {
      const records = await store.all()
      const closed = await openPages.closedAmong(new Set(records.map((record) => record.page)))
      return records.filter((record) => closed.has(record.page))
    },
    close() {
      clearInterval(timer)
      openPages.close()
    },
  }
}

/** Finds out which pages of this browser are open, so that a page takes over the uploads of closed pages only. */
interface OpenPages {
  /** Those of the pages that are closed. */
  closedAmong(pages: Iterable<string>): Promise<ReadonlySet<string>>
  close(): void
}

/** `ask`: is this page open? `here`: this page is open. */
interface Message {
  readonly type: 'ask' | 'here'
  readonly page: string
}

/** An open page responds within this time. Milliseconds. */
const responseTime = 300

/** `own` is the id of this page. */
function createOpenPages(own: string): OpenPages {
  const channel = new BroadcastChannel('mediabucket-uploads')
  const open = new Set<string>()
  channel.onmessage = ({ data }: MessageEvent<Message>) => {
    if (data.type === 'here') open.add(data.page)
    else if (data.page === own) channel.postMessage({ type: 'here', page: own } satisfies Message)
  }
  return {
    async closedAmong(pages) {
      const closed = new Set(pages)
      if (closed.size === 0) return closed
      for (const page of closed) channel.postMessage({ type: 'ask', page } satisfies Message)
      await new Promise((resolve) => setTimeout(resolve, responseTime))
      for (const page of open) closed.delete(page)
      return closed
    },
    close: () => channel.close(),
  }
}

/** Read at the beginning, in the middle and at the end of a file. Bytes. */
const sampleLength = 65_536

/**
 * A 32-bit hash of three samples of a file's content. Name, size and time do not always distinguish two files, and a
 * resumable upload that continued with another file's bytes would store a mixture of both.
 */
export async function sampleHash(file: Blob): Promise<number> {
  const starts = [0, Math.floor(file.size / 2), Math.max(0, file.size - sampleLength)]
  const samples = await Promise.all(
    starts.map((start) => file.slice(start, start + sampleLength).arrayBuffer()),
  )
  // FNV-1a, because crypto.subtle is missing in pages that were not loaded over HTTPS.
  let hash = 0x811c9dc5
  for (const sample of samples) {
    for (const byte of new Uint8Array(sample)) hash = Math.imul(hash ^ byte, 0x01000193)
  }
  return hash >>> 0
}
