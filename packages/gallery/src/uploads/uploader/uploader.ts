import type { Token } from '@mediabucket/client'
import { refusalByLimits } from '../../limit-texts.ts'
import type { ChosenFile } from '../chosen-files.ts'
import type { UploadsView } from '../uploads-view.ts'
import type { SendOptions } from './outcomes.ts'
import { createSavedUploads, sampleHash } from './saved-uploads.ts'
import { createSendQueue } from './send-queue.ts'
import { createSpeed } from './speed.ts'
import { createUploadList, newEntry, type UploadEntry } from './upload-list.ts'

export interface UploaderOptions extends Pick<SendOptions, 'client' | 'largeFileClient'> {
  readonly bucket: string
  /** The token with what is left of its limits: files that exceed them fail without a request. Null if the server decides. */
  limitsNow(): Promise<Pick<Token, 'limits' | 'left'> | null>
  onChange(view: UploadsView): void
  onUnreachable(): void
  onRefused(status: number): void
}

/** Uploads files. This module is loaded with the first upload. */
export interface Uploader {
  /** Adds files; returns those that are already in the list and not done, which are added only if `again` is true. */
  add(files: readonly ChosenFile[], again?: boolean): Promise<readonly ChosenFile[]>
  /** Continues the unfinished uploads of closed pages; resolves with the number of files. */
  restore(): Promise<number>
  /** Pauses or resumes a file. A resumed file comes after the others. */
  toggle(id: string): void
  pauseAll(): void
  resumeAll(): void
  retry(id: string): void
  retryAll(canFit: (size: number) => boolean): void
  /** The connection was restored. */
  onServerBack(): void
  cancel(id: string): void
  /** Cancels unfinished uploads and empties the list. */
  cancelAll(): void
  /** Sets the maximum number of rows in the view. */
  setMaxRows(count: number): void
  /** The ids of the stored items in order. */
  uploadedIds(): readonly string[]
  /** Whether the browser stores all unfinished uploads, so that they continue after the page is closed. */
  hasSavedAll(): boolean
  /** Saves all unfinished uploads for a later visit, because the page is about to close. */
  saveNow(): void
  /** Stops without cancelling, so that a later visit can continue the uploads. */
  close(): void
}

/** From a change to the update of the view. Milliseconds. */
const updateInterval = 100

/** Between two updates of the view while files are sent: without progress, the time left changes too. Milliseconds. */
const sendingInterval = 1000

export function createUploader(options: UploaderOptions): Uploader {
  const { bucket, client, largeFileClient } = options
  const list = createUploadList()
  const speed = createSpeed()
  const page = `${Date.now()}-${Math.random().toString(36).slice(2)}`
  const saved = createSavedUploads(list, bucket, page, changed)
  let [counter, maxRows] = [0, 50]
  let scheduled: ReturnType<typeof setTimeout> | undefined
  let repeated: ReturnType<typeof setTimeout> | undefined
  let closed = false

  const queue = createSendQueue(list, {
    client,
    largeFileClient,
    onChange: changed,
    onStored: saved.forget,
    onFinal: saved.forget,
    onSending: saved.update,
    onUnreachable: options.onUnreachable,
    onRefused: options.onRefused,
  })

  function changed(): void {
    if (!closed) scheduled ??= setTimeout(publish, updateInterval)
  }

  function publish(): void {
    scheduled = undefined
    const totals = list.totals()
    if (queue.paused || queue.waitingForServer) speed.pause()
    else
      speed.update(
        performance.now(),
        { bytes: totals.sentBytes, files: totals.done },
        { bytes: totals.allBytes - totals.sentBytes, files: totals.left },
      )
    const rows = list.rows(maxRows, queue.isSeparate)
    options.onChange({
      rows: queue.paused
        ? rows.map((row) => (isInProgress(row.state) ? { ...row, state: 'paused', isSeparate: false } : row))
        : rows,
      totals: queue.paused ? { ...totals, paused: totals.left } : totals,
      waitingForServer: queue.waitingForServer,
      allSaved: saved.hasAll(),
      bytesPerSecond: speed.bytesPerSecond,
      secondsLeft: speed.secondsLeft,
    })
    clearTimeout(repeated)
    if (list.in('sending').size > 0) repeated = setTimeout(changed, sendingInterval)
  }

  const nextId = () => `${page}-${String(counter++).padStart(9, '0')}`

  /** The browser must store the new file instead of what it has stored. */
  function replaceFile(entry: UploadEntry, change: Parameters<typeof list.update>[1]): void {
    list.update(entry, change)
    saved.update([entry])
  }

  /** Lets entries fail that exceed the limits of the token. Those of resumable uploads have their room already. */
  function checkLimits(
    entries: readonly UploadEntry[],
    limited: Awaited<ReturnType<UploaderOptions['limitsNow']>>,
  ): void {
    if (limited === null) return
    const ahead = { items: 0, bytes: 0 }
    const takeRoom = ({ size }: UploadEntry) => {
      ahead.items += 1
      ahead.bytes += size
    }
    for (const state of ['waiting', 'paused'] as const)
      for (const entry of list.in(state)) if (entry.uploadId === null) takeRoom(entry)
    for (const entry of entries) {
      if (entry.state !== 'waiting' || entry.uploadId !== null) continue
      const reason = refusalByLimits(limited, { size: entry.size, type: entry.contentType }, ahead)
      if (reason === null) takeRoom(entry)
      else Object.assign(entry, { state: 'failed', reason, isFinal: true })
    }
  }

  /** Queues a failed entry again, with the current version of its file if the browser can read it. */
  async function retryEntry(entry: UploadEntry): Promise<void> {
    const file = (await entry.reread?.().catch(() => null)) ?? entry.file
    if (!list.get(entry.id)) return
    if (file)
      replaceFile(entry, { file, size: file.size, modified: file.lastModified, contentType: file.type })
    list.move(entry, 'waiting')
    queue.run()
    changed()
  }

  /** The entry of an earlier visit that continues with this file; null if there is none. */
  async function neededEntry({ file, path }: ChosenFile): Promise<UploadEntry | null> {
    if (file === null || list.in('unavailable').size === 0) return null
    for (const entry of list.in('unavailable')) {
      const { name, size, modified, sample } = entry
      if (file.name !== name || file.size !== size || file.lastModified !== modified) continue
      if (path.includes('/') && entry.path.includes('/') && path !== entry.path) continue
      if (sample === null || (await sampleHash(file)) === sample) return entry
    }
    return null
  }

  function cancelEntry(entry: UploadEntry): void {
    if (entry.state !== 'done') queue.endUpload(entry)
    list.remove(entry)
    queue.stop(entry)
    saved.forget([entry])
  }

  return {
    async add(files, again = false) {
      const limited = await options.limitsNow()
      const duplicates: ChosenFile[] = []
      const added: UploadEntry[] = []
      // Computed first, because one choice may contain two files of equal path, size and time.
      const known = new Set(files.filter((chosen) => chosen.file && !again && isKnown(chosen)))
      for (const chosen of files) {
        const entry = await neededEntry(chosen)
        if (entry && chosen.file) {
          replaceFile(entry, { file: chosen.file })
          entry.reread = chosen.reread
          list.move(entry, 'waiting')
        } else if (known.has(chosen)) duplicates.push(chosen)
        else added.push(newEntry(chosen, nextId()))
      }
      checkLimits(added, limited)
      for (const entry of added) {
        const former = list.unfinished(entry)
        if (former?.isFinal) cancelEntry(former)
        list.add(entry)
      }
      queue.run()
      changed()
      return duplicates
    },
    async restore() {
      const records = await saved.abandoned()
      const entries = records.map(({ path, file, contentType, size, modified, uploadId, form, sample }) => {
        const entry = newEntry({ file, path, reread: null }, nextId())
        const state = file === null ? 'unavailable' : 'waiting'
        return Object.assign(entry, { contentType, size, modified, uploadId, form, sample, state })
      })
      checkLimits(entries, await options.limitsNow())
      for (const entry of entries) list.add(entry)
      saved.saveInstead(entries, records)
      saved.forget(entries.filter(({ isFinal }) => isFinal))
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
      } else if (isInProgress(entry.state) && queue.isSeparate(entry)) {
        list.move(entry, 'paused')
        queue.stop(entry)
      }
      changed()
    },
    pauseAll() {
      queue.pause()
      changed()
    },
    resumeAll() {
      for (const entry of [...list.in('paused')]) list.move(entry, 'waiting')
      queue.resume()
      changed()
    },
    retry(id) {
      const entry = list.get(id)
      if (entry?.state === 'failed' && !entry.isFinal) void retryEntry(entry)
    },
    retryAll(canFit) {
      // Ids are in the order in which the files were added.
      const failed = [...list.in('failed')].toSorted((a, b) => (a.id < b.id ? -1 : 1))
      for (const entry of failed) if (!entry.isFinal && canFit(entry.size)) list.move(entry, 'waiting')
      queue.run()
      changed()
    },
    onServerBack: () => queue.onServerBack(),
    cancel(id) {
      const entry = list.get(id)
      if (entry && (entry.state !== 'sending' || queue.isSeparate(entry))) cancelEntry(entry)
      changed()
    },
    cancelAll() {
      queue.cancel()
      for (const state of ['waiting', 'paused', 'failed', 'unavailable', 'sending'] as const)
        for (const entry of [...list.in(state)]) cancelEntry(entry)
      list.clear()
      queue.resume()
      changed()
    },
    setMaxRows(count) {
      maxRows = count
      changed()
    },
    uploadedIds: () => [...list.in('done')].flatMap(({ itemId }) => itemId ?? []),
    hasSavedAll: saved.hasAll,
    saveNow: () => saved.saveNow(),
    close() {
      closed = true
      saved.saveNow()
      clearTimeout(scheduled)
      clearTimeout(repeated)
      queue.close()
      saved.close()
    },
  }

  function isKnown({ file, path }: ChosenFile): boolean {
    if (file === null) return false
    const entry = list.unfinished({ path, size: file.size, modified: file.lastModified })
    return entry !== undefined && entry.state !== 'unavailable' && !entry.isFinal
  }
}

const isInProgress = (state: UploadEntry['state']): boolean => state === 'waiting' || state === 'sending'
