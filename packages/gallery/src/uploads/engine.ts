import type { Client } from '@mediabucket/client'
import { createBoard } from './board.ts'
import type { ChosenFile } from './chosen-files.ts'
import { createEndResumable } from './end-resumable.ts'
import { createKeeper } from './keeper.ts'
import { createLane } from './lane.ts'
import { sampleOf } from './sample.ts'
import { createSpeed } from './speed.ts'
import { newEntry, type UploadEntry } from './upload-entry.ts'
import type { UploadsView } from './upload-row.ts'

export interface EngineOptions {
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
export interface Engine {
  /** Returns those that are in the list already and not done, which are added with `again` alone. */
  add(files: readonly ChosenFile[], again?: boolean): Promise<readonly ChosenFile[]>
  /** Continues what pages left that are closed now; resolves with how many files. */
  restore(): Promise<number>
  /** Pauses what runs, and lets run what is paused; what is resumed becomes the last in order. */
  toggle(id: string): void
  pauseAll(): void
  resumeAll(): void
  retry(id: string): void
  retryAll(mayFit: (size: number) => boolean): void
  serverBack(): void
  cancel(id: string): void
  /** Empties the list, and ends what is not done. */
  cancelAll(): void
  /** Shows so many rows. */
  show(rows: number): void
  /** Of the stored items, in order; the URL is null where only the id is known. */
  items(): readonly { readonly id: string; readonly url: string | null }[]
  /** Stores what is unfinished for a later visit, at once. */
  keepNow(): void
  /** Stops without cancelling, so that a later visit can continue. */
  close(): void
}

/** Between two updates of the page. Milliseconds. */
const pace = 100

export function createEngine(options: EngineOptions): Engine {
  const { bucket, client, token, endpoint } = options
  const endResumable = createEndResumable(options)
  const board = createBoard()
  const speed = createSpeed()
  const page = `${Date.now()}-${Math.random().toString(36).slice(2)}`
  const keeper = createKeeper(board, bucket, page, changed)
  let [counter, shownRows] = [0, 50]
  let scheduled: ReturnType<typeof setTimeout> | undefined

  const lane = createLane(board, {
    client,
    token,
    endpoint,
    loadResumable: options.loadResumable,
    onChange: changed,
    onStored: keeper.forget,
    onSending: keeper.update,
    onUnreachable: options.onUnreachable,
    onRefused: options.onRefused,
  })

  function changed(): void {
    scheduled ??= setTimeout(publish, pace)
  }

  function publish(): void {
    scheduled = undefined
    const totals = board.totals()
    if (lane.held || lane.waitingForServer) speed.pause()
    else
      speed.update(
        performance.now(),
        { bytes: totals.sentBytes, files: totals.done },
        { bytes: totals.allBytes - totals.sentBytes, files: totals.left },
      )
    const rows = board.rows(shownRows, lane.isAlone)
    options.onChange({
      rows: lane.held
        ? rows.map((row) => (isUnderWay(row.state) ? { ...row, state: 'paused', alone: false } : row))
        : rows,
      totals: lane.held ? { ...totals, paused: totals.left } : totals,
      held: lane.held,
      waitingForServer: lane.waitingForServer,
      kept: keeper.hasAll(),
      bytesPerSecond: speed.bytesPerSecond,
      secondsLeft: speed.secondsLeft,
    })
  }

  const nextId = () => `${page}-${String(counter++).padStart(9, '0')}`

  /** Takes the file as it is on the disk now, where the browser can. */
  async function reread(entry: UploadEntry): Promise<void> {
    const file = (await entry.reread?.().catch(() => null)) ?? entry.file
    if (!board.get(entry.id)) return
    if (file)
      board.update(entry, { file, size: file.size, modified: file.lastModified, contentType: file.type })
    board.move(entry, 'waiting')
    lane.run()
    changed()
  }

  /** The entry of an earlier visit that waits for this very file. */
  async function wanted({ file, path }: ChosenFile): Promise<UploadEntry | null> {
    if (file === null || board.in('needed').size === 0) return null
    for (const entry of board.in('needed')) {
      const { name, size, modified, sample } = entry
      if (file.name !== name || file.size !== size || file.lastModified !== modified) continue
      if (path.includes('/') && entry.path.includes('/') && path !== entry.path) continue
      if (sample === null || (await sampleOf(file)) === sample) return entry
    }
    return null
  }

  function drop(entry: UploadEntry): void {
    if (entry.uploadUrl !== null && entry.state !== 'done') endResumable(entry.uploadUrl)
    board.remove(entry)
    lane.stop(entry)
    keeper.forget([entry])
  }

  return {
    async add(files, again = false) {
      const there: ChosenFile[] = []
      // One action may hold two files of one name, size and time; only what was there before it counts.
      const known = new Set(files.filter((chosen) => chosen.file && !again && isKnown(chosen)))
      for (const chosen of files) {
        const entry = await wanted(chosen)
        if (entry && chosen.file) {
          board.update(entry, { file: chosen.file })
          entry.reread = chosen.reread
          board.move(entry, 'waiting')
        } else if (known.has(chosen)) there.push(chosen)
        else board.add(newEntry(chosen, nextId()))
      }
      lane.run()
      changed()
      return there
    },
    async restore() {
      const records = await keeper.takeOver()
      for (const { path, file, contentType, size, modified, uploadUrl, form, sample } of records) {
        const entry = newEntry({ file, path, reread: null }, nextId())
        Object.assign(entry, { contentType, size, modified, uploadUrl, form, sample })
        entry.state = file === null ? 'needed' : 'waiting'
        board.add(entry)
        keeper.keep([entry])
      }
      lane.run()
      changed()
      return records.length
    },
    toggle(id) {
      const entry = board.get(id)
      if (!entry) return
      if (entry.state === 'paused') {
        board.move(entry, 'waiting')
        lane.run()
      } else if (isUnderWay(entry.state) && lane.isAlone(entry)) {
        board.move(entry, 'paused')
        lane.stop(entry)
      }
      changed()
    },
    pauseAll() {
      lane.hold()
      changed()
    },
    resumeAll() {
      for (const entry of [...board.in('paused')]) board.move(entry, 'waiting')
      lane.release()
      changed()
    },
    retry(id) {
      const entry = board.get(id)
      if (entry?.state === 'failed') void reread(entry)
    },
    retryAll(mayFit) {
      // In the order in which they were added.
      const failed = [...board.in('failed')].toSorted((a, b) => (a.id < b.id ? -1 : 1))
      for (const entry of failed) if (mayFit(entry.size)) board.move(entry, 'waiting')
      lane.run()
      changed()
    },
    serverBack: () => lane.serverBack(),
    cancel(id) {
      const entry = board.get(id)
      if (entry && (entry.state !== 'sending' || lane.isAlone(entry))) drop(entry)
      changed()
    },
    cancelAll() {
      lane.cancel()
      for (const state of ['waiting', 'paused', 'failed', 'needed', 'sending'] as const)
        for (const entry of [...board.in(state)]) drop(entry)
      board.clear()
      lane.release()
      changed()
    },
    show(rows) {
      shownRows = rows
      changed()
    },
    items: () => [...board.in('done')].flatMap(({ item }) => item ?? []),
    keepNow: () => keeper.keepNow(),
    close() {
      keeper.keepNow()
      clearTimeout(scheduled)
      lane.close()
      keeper.close()
    },
  }

  function isKnown({ file, path }: ChosenFile): boolean {
    if (file === null) return false
    const entry = board.unfinished({ path, size: file.size, modified: file.lastModified })
    return entry !== undefined && entry.state !== 'needed'
  }
}

const isUnderWay = (state: UploadEntry['state']): boolean => state === 'waiting' || state === 'sending'
