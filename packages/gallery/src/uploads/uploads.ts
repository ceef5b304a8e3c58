import type { Client } from '@mediabucket/client'
import { effect, type ReadonlySignal, signal } from '@preact/signals'
import { serviceUrl } from '../service/urls.ts'
import { strings } from '../strings.ts'
import { type Chosen, chosenByInput } from './files/chosen-files.ts'
import { droppedFiles } from './files/dropped-files.ts'
import { hasUnfinishedUploads } from './leftover.ts'
import { duplicatesNote, type NewNote, type Note, skippedNotes } from './notes.ts'
import type { Uploader } from './uploader/uploader.ts'
import { emptyView, type UploadsView } from './uploads-view.ts'

/** The files on their way. */
export interface Uploads {
  readonly view: ReadonlySignal<UploadsView>
  /** What was left out, and why. */
  readonly notes: ReadonlySignal<readonly Note[]>
  /** So many files were found so far in folders that are being read; null while none are. */
  readonly reading: ReadonlySignal<number | null>
  readonly allowed: boolean
  /** Files of a file input. */
  add(files: readonly File[]): Promise<void>
  /** Call it while the event is handled. */
  addDropped(transfer: DataTransfer): Promise<void>
  dismiss(note: number): void
  /** Continues what an earlier visit left, if there is any. */
  resumeUnfinished(): Promise<void>
  /** The loaded uploader; null before the first upload. */
  readonly uploader: ReadonlySignal<Uploader | null>
  serverBack(): void
  cancelAll(): void
  close(): void
}

export interface UploadsOptions {
  readonly bucket: string
  readonly token: string
  readonly client: Client
  readonly allowed: boolean
  readonly tell: (text: string, tone?: 'bad') => void
  /** MediaCache were added: all that were under way are done, or some of many are. */
  readonly onAdded: (allDone: boolean) => void
  readonly onUnreachable: () => void
  readonly reached: (onWait?: () => void) => Promise<void>
  readonly onRefused: () => void
  /** The bucket had no room for a file. */
  readonly onFull: () => void
}

export function createUploads(options: UploadsOptions): Uploads {
  const { bucket, token, client, allowed, tell } = options
  const view = signal<UploadsView>(emptyView)
  const notes = signal<readonly Note[]>([])
  const reading = signal<number | null>(null)
  const uploader = signal<Uploader | null>(null)
  let loading: Promise<Uploader> | null = null
  let closed = false
  let lastNote = 0

  async function load(): Promise<Uploader> {
    await options.reached(() => tell(strings.uploads.held))
    const { createUploader } = await import('./uploader/uploader.ts')
    const made = createUploader({
      bucket,
      client,
      token,
      endpoint: new URL('api/uploads', serviceUrl()).href,
      async loadResumable() {
        await options.reached()
        return await import('./uploader/resumable.ts')
      },
      onChange(next) {
        if (closed) return
        const before = view.value.totals
        view.value = next
        const { left, done } = next.totals
        if (done > before.done) options.onAdded(left === 0)
      },
      onRefused(status) {
        if (closed) return
        if (status === 401) options.onRefused()
        if (status === 507) options.onFull()
      },
      onUnreachable: () => !closed && options.onUnreachable(),
    })
    uploader.value = made
    return made
  }

  function loaded(): Promise<Uploader> {
    loading ??= load().catch((error: unknown) => {
      loading = null
      throw error
    })
    return loading
  }

  function note(...added: readonly NewNote[]): void {
    notes.value = [...notes.value, ...added.map((one) => ({ ...one, id: ++lastNote }))]
  }

  async function take({ files, skipped }: Chosen): Promise<void> {
    note(...skippedNotes(skipped))
    if (files.length === 0) return
    try {
      const made = await loaded()
      const there = await made.add(files)
      if (there.length > 0) note(duplicatesNote(there, () => void made.add(there, true)))
    } catch {
      tell(strings.uploads.notLoaded, 'bad')
    }
  }

  const refuse = () => tell(strings.uploads.mayNot, 'bad')

  // Only while something would be cut short: a page that always asks is closed without reading.
  const askBeforeLeaving = (event: BeforeUnloadEvent) => {
    uploader.value?.saveNow()
    event.preventDefault()
  }
  const stopAsking = effect(() => {
    if (view.value.totals.left > 0 || reading.value !== null)
      addEventListener('beforeunload', askBeforeLeaving)
    else removeEventListener('beforeunload', askBeforeLeaving)
  })

  return {
    view,
    notes,
    reading,
    allowed,
    uploader,
    async add(files) {
      if (files.length === 0) return
      if (!allowed) return refuse()
      await take(chosenByInput(files))
    },
    async addDropped(transfer) {
      if (!allowed) return refuse()
      const found = droppedFiles(transfer, (count) => {
        reading.value = count
      })
      try {
        await take(await found)
      } finally {
        reading.value = null
      }
    },
    dismiss(id) {
      notes.value = notes.value.filter((one) => one.id !== id)
    },
    async resumeUnfinished() {
      if (!allowed || !(await hasUnfinishedUploads(bucket)) || closed) return
      const count = await loaded().then(
        (made) => made.restore(),
        () => 0,
      )
      if (count > 0) tell(strings.uploads.continued(count))
    },
    serverBack: () => uploader.value?.serverBack(),
    cancelAll() {
      notes.value = []
      uploader.value?.cancelAll()
    },
    close() {
      closed = true
      stopAsking()
      removeEventListener('beforeunload', askBeforeLeaving)
      uploader.value?.close()
    },
  }
}
