import { openUnfinishedStore, type Unfinished } from '../unfinished-store.ts'
import { createOpenPages } from './open-pages.ts'
import { sampleHash } from './sample-hash.ts'
import type { UploadEntry } from './upload-entry.ts'
import type { UploadList } from './upload-list.ts'

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
      for (const entry of list.in(state)) if (!entry.isSaved && entry.file) yield entry
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
    for (const entry of entries) if (entry.uploadUrl !== null && entry.sample === null) void addSample(entry)
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
      const changed = entries.filter(({ isSaved, uploadUrl }) => isSaved || uploadUrl !== null)
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
