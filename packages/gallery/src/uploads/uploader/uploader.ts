import type { Client } from '@mediabucket/client'
import type { ChosenFile } from '../files/chosen-files.ts'
import { newEntry, type UploadEntry } from '../upload-entry.ts'
import type { UploadsView } from '../uploads-view.ts'
import { sampleHash } from './sample-hash.ts'
import { createSavedUploads } from './saved-uploads.ts'
import { createSendQueue } from './send-queue.ts'
import { createSpeed } from './speed.ts'
import { createTerminateUpload } from './terminate-upload.ts'
import { createUploadList } from './upload-list.ts'

export interface UploaderOptions {
  readonly bucket: string
  readonly client: Client
  readonly token: string
  /** Where resumable uploads begin, on the page's own origin. */
  readonly endpoint: string
  loadResumable(): Promise<typeof import('./resumable.ts')>
  onChange(view: UploadsView): void
  onUnreachable(): void
  onRefused(status: number): void
}

/** What is loaded with the first upload. */
export interface Uploader {
  /** Returns those that are in the list already and not done, which are added with `again` alone. */
  add(files: readonly ChosenFile[], again?: boolean): Promise<readonly ChosenFile[]>
  /** Continues what pages left that are closed now; resolves with how many files. */
  restore(): Promise<number>
  /** Pauses what runs, and lets run what is paused; what is resumed becomes the last in order. */
  toggle(id: string): void
  pauseAll(): void
  resumeAll(): void
  retry(id: string): void
  retryAll(canFit: (size: number) => boolean): void
  serverBack(): void
  cancel(id: string): void
  /** Empties the list, and ends what is not done. */
  cancelAll(): void
  /** Shows so many rows. */
  show(rows: number): void
  /** Of the stored items, in order; the URL is null where only the id is known. */
  items(): readonly { readonly id: string; readonly url: string | null }[]
  /** Stores what is unfinished for a later visit, at once. */
  saveNow(): void
  /** Stops without cancelling, so that a later visit can continue. */
  close(): void
}

/** Between two updates of the page. Milliseconds. */
const pace = 100

export function createUploader(options: UploaderOptions): Uploader {
  const { bucket, client, token, endpoint } = options
  const terminateUpload = createTerminateUpload(options)
  const list = createUploadList()
  const speed = createSpeed()
  const page = `${Date.now()}-${Math.random().toString(36).slice(2)}`
  const saved = createSavedUploads(list, bucket, page, changed)
  let [counter, shownRows] = [0, 50]
  let scheduled: ReturnType<typeof setTimeout> | undefined

  const queue = createSendQueue(list, {
    client,
    token,
    endpoint,
    loadResumable: options.loadResumable,
    onChange: changed,
    onStored: saved.forget,
    onSending: saved.update,
    onUnreachable: options.onUnreachable,
    onRefused: options.onRefused,
  })

  function changed(): void {
    scheduled ??= setTimeout(publish, pace)
  }

  function publish(): void {
    scheduled = undefined
    const totals = list.totals()
    if (queue.held || queue.waitingForServer) speed.pause()
    else
      speed.update(
        performance.now(),
        { bytes: totals.sentBytes, files: totals.done },
        { bytes: totals.allBytes - totals.sentBytes, files: totals.left },
      )
    const rows = list.rows(shownRows, queue.isSentAlone)
    options.onChange({
      rows: queue.held
        ? rows.map((row) => (isUnderWay(row.state) ? { ...row, state: 'paused', alone: false } : row))
        : rows,
      totals: queue.held ? { ...totals, paused: totals.left } : totals,
      held: queue.held,
      waitingForServer: queue.waitingForServer,
      kept: saved.hasAll(),
      bytesPerSecond: speed.bytesPerSecond,
      secondsLeft: speed.secondsLeft,
    })
  }

  const nextId = () => `${page}-${String(counter++).padStart(9, '0')}`

  /** Takes the file as it is on the disk now, where the browser can. */
  async function reread(entry: UploadEntry): Promise<void> {
    const file = (await entry.reread?.().catch(() => null)) ?? entry.file
    if (!list.get(entry.id)) return
    if (file)
      list.update(entry, { file, size: file.size, modified: file.lastModified, contentType: file.type })
    list.move(entry, 'waiting')
    queue.run()
    changed()
  }

  /** The entry of an earlier visit that waits for this very file. */
  async function wanted({ file, path }: ChosenFile): Promise<UploadEntry | null> {
    if (file === null || list.in('needed').size === 0) return null
    for (const entry of list.in('needed')) {
      const { name, size, modified, sample } = entry
      if (file.name !== name || file.size !== size || file.lastModified !== modified) continue
      if (path.includes('/') && entry.path.includes('/') && path !== entry.path) continue
      if (sample === null || (await sampleHash(file)) === sample) return entry
    }
    return null
  }

  function drop(entry: UploadEntry): void {
    if (entry.uploadUrl !== null && entry.state !== 'done') terminateUpload(entry.uploadUrl)
    list.remove(entry)
    queue.stop(entry)
    saved.forget([entry])
  }

  return {
    async add(files, again = false) {
      const there: ChosenFile[] = []
      // One action may hold two files of one name, size and time; only what was there before it counts.
      const known = new Set(files.filter((chosen) => chosen.file && !again && isKnown(chosen)))
      for (const chosen of files) {
        const entry = await wanted(chosen)
        if (entry && chosen.file) {
          list.update(entry, { file: chosen.file })
          entry.reread = chosen.reread
          list.move(entry, 'waiting')
        } else if (known.has(chosen)) there.push(chosen)
        else list.add(newEntry(chosen, nextId()))
      }
      queue.run()
      changed()
      return there
    },
    async restore() {
      const records = await saved.takeOver()
      for (const { path, file, contentType, size, modified, uploadUrl, form, sample } of records) {
        const entry = newEntry({ file, path, reread: null }, nextId())
        Object.assign(entry, { contentType, size, modified, uploadUrl, form, sample })
        entry.state = file === null ? 'needed' : 'waiting'
        list.add(entry)
        saved.keep([entry])
      }
      queue.run()
      changed()
      return records.length
    },
    toggle(id) {
      const entry = list.get(id)
      if (!entry) return
      if (entry.state === 'paused') {
        list.move(entry, 'waiting')
        queue.run()
      } else if (isUnderWay(entry.state) && queue.isSentAlone(entry)) {
        list.move(entry, 'paused')
        queue.stop(entry)
      }
      changed()
    },
    pauseAll() {
      queue.hold()
      changed()
    },
    resumeAll() {
      for (const entry of [...list.in('paused')]) list.move(entry, 'waiting')
      queue.release()
      changed()
    },
    retry(id) {
      const entry = list.get(id)
      if (entry?.state === 'failed') void reread(entry)
    },
    retryAll(canFit) {
      // In the order in which they were added.
      const failed = [...list.in('failed')].toSorted((a, b) => (a.id < b.id ? -1 : 1))
      for (const entry of failed) if (canFit(entry.size)) list.move(entry, 'waiting')
      queue.run()
      changed()
    },
    serverBack: () => queue.serverBack(),
    cancel(id) {
      const entry = list.get(id)
      if (entry && (entry.state !== 'sending' || queue.isSentAlone(entry))) drop(entry)
      changed()
    },
    cancelAll() {
      queue.cancel()
      for (const state of ['waiting', 'paused', 'failed', 'needed', 'sending'] as const)
        for (const entry of [...list.in(state)]) drop(entry)
      list.clear()
      queue.release()
      changed()
    },
    show(rows) {
      shownRows = rows
      changed()
    },
    items: () => [...list.in('done')].flatMap(({ item }) => item ?? []),
    saveNow: () => saved.saveNow(),
    close() {
      saved.saveNow()
      clearTimeout(scheduled)
      queue.close()
      saved.close()
    },
  }

  function isKnown({ file, path }: ChosenFile): boolean {
    if (file === null) return false
    const entry = list.unfinished({ path, size: file.size, modified: file.lastModified })
    return entry !== undefined && entry.state !== 'needed'
  }
}

const isUnderWay = (state: UploadEntry['state']): boolean => state === 'waiting' || state === 'sending'
