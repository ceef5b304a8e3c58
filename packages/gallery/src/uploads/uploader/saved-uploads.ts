import { openUnfinishedStore, type Unfinished } from '../unfinished-store.ts'
import type { UploadEntry } from '../upload-entry.ts'
import { createOpenPages } from './open-pages.ts'
import { sampleHash } from './sample-hash.ts'
import type { UploadList } from './upload-list.ts'

/** Keeps in the browser what is not uploaded yet, and takes over what a closed page left. */
export interface SavedUploads {
  keep(entries: readonly UploadEntry[]): void
  /** Keeps resumable uploads, and what has changed of others that are kept. */
  update(entries: readonly UploadEntry[]): void
  /** Everything, at once: the page is about to close. */
  saveNow(): void
  forget(entries: readonly UploadEntry[]): void
  /** Whether everything that is not done is kept. */
  hasAll(): boolean
  takeOver(): Promise<readonly Unfinished[]>
  close(): void
}

/** What is done sooner is not kept at all. Milliseconds. */
const soon = 3000

/** Kept at a time, so that the page stays responsive. */
const most = 200

export function createSavedUploads(
  list: UploadList,
  bucket: string,
  page: string,
  onKept: () => void,
): SavedUploads {
  const store = openUnfinishedStore(bucket, page)
  const presence = createOpenPages(page)
  const timer = setInterval(() => keepOld(most, soon), 1000)

  function* unkept(): Generator<UploadEntry> {
    for (const state of ['sending', 'waiting', 'paused', 'failed'] as const)
      for (const entry of list.in(state)) if (!entry.kept && entry.file) yield entry
  }

  function keepOld(count: number, age: number): void {
    const entries: UploadEntry[] = []
    for (const entry of unkept()) {
      if (entries.length === count || Date.now() - entry.addedAt < age) break
      entries.push(entry)
    }
    if (entries.length > 0) keep(entries)
  }

  function keep(entries: readonly UploadEntry[]): void {
    for (const entry of entries) entry.kept = true
    store.put(entries)
    onKept()
    // Only a resumable upload can be continued with a file that is chosen again.
    for (const entry of entries) if (entry.uploadUrl !== null && entry.sample === null) void sample(entry)
  }

  async function sample(entry: UploadEntry): Promise<void> {
    entry.sample = entry.file ? await sampleHash(entry.file).catch(() => null) : null
    if (entry.sample !== null && list.get(entry.id)?.state !== 'done') store.put([entry])
  }

  return {
    keep,
    update(entries) {
      const changed = entries.filter(({ kept, uploadUrl }) => kept || uploadUrl !== null)
      if (changed.length > 0) keep(changed)
    },
    saveNow: () => keepOld(Number.POSITIVE_INFINITY, 0),
    forget(entries) {
      store.remove(entries.filter(({ kept }) => kept).map(({ id }) => id))
      for (const entry of entries) entry.kept = false
    },
    hasAll: () => unkept().next().done === true,
    async takeOver() {
      const records = await store.all()
      const gone = await presence.gone(new Set(records.map((one) => one.page)))
      const taken = records.filter((one) => gone.has(one.page))
      store.remove(taken.map(({ id }) => id))
      return taken
    },
    close() {
      clearInterval(timer)
      presence.close()
    },
  }
}
