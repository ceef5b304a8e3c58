import type { Client, Token } from '@mediabucket/client'
import { effect, type ReadonlySignal, signal } from '@preact/signals'
import type { ComponentType } from 'preact'
import { loadTexts, strings } from '../strings.ts'
import { type Chosen, type ChosenFile, chosenByInput, droppedFiles } from './chosen-files.ts'
import { duplicatesNote, type NewNote, type Note, skippedNotes } from './notes.ts'
import { hasUnfinishedUploads } from './unfinished-store.ts'
import type { Uploader } from './uploader/uploader.ts'
import { emptyView, type UploadsView } from './uploads-view.ts'

/** The uploads of the page. Loads the uploader with the first file. */
export interface Uploads {
  readonly view: ReadonlySignal<UploadsView>
  /** The component that lists the uploads; null until it is loaded. */
  readonly tray: ReadonlySignal<ComponentType | null>
  /** Rejects in a page that was opened before an upgrade. */
  loadTray(): Promise<void>
  /** Notes about files that were skipped. */
  readonly notes: ReadonlySignal<readonly Note[]>
  /** The number of files found so far while dropped folders are read; null otherwise. */
  readonly filesFound: ReadonlySignal<number | null>
  readonly allowed: boolean
  /** Adds the files of a file input. */
  add(files: readonly File[]): Promise<void>
  /** Adds files that `onChosen` has received. */
  send(files: readonly ChosenFile[]): Promise<void>
  /** Adds dropped or pasted files. Call it in the event handler: the data is not available afterwards. */
  addDropped(transfer: DataTransfer): Promise<void>
  dismiss(note: number): void
  /** Continues the uploads of an earlier visit, if there are any. */
  resumeUnfinished(): Promise<void>
  /** Null before the first upload. */
  readonly uploader: ReadonlySignal<Uploader | null>
  /** The connection was restored. */
  onServerBack(): void
  cancelAll(): void
  close(): void
}

export interface UploadsOptions {
  readonly bucket: string
  readonly client: Client
  readonly largeFileClient: Client
  /** Whether the token may upload. */
  readonly allowed: boolean
  /** Imports the component that lists the uploads; absent on a page that lists them itself. */
  readonly importTray?: () => Promise<ComponentType>
  /** Receives chosen files, for `send`; without it, they are uploaded at once. */
  readonly onChosen?: (files: readonly ChosenFile[]) => void
  readonly notify: (text: string, tone?: 'bad') => void
  /** Called when files were uploaded; `allDone` is false while others are in progress. */
  readonly onUploaded: (allDone: boolean) => void
  readonly onUnreachable: () => void
  readonly untilReached: (onWait?: () => void) => Promise<void>
  readonly onUnauthorized: () => void
  /** The bucket is full, or does not exist any more. */
  readonly onBucketRefused: () => void
  /** The token of an upload link, with what is left of its limits; without it, the server alone decides. */
  readonly limitsNow?: () => Promise<Pick<Token, 'limits' | 'left'>>
}

export function createUploads(options: UploadsOptions): Uploads {
  const { bucket, client, allowed, notify } = options
  const view = signal<UploadsView>(emptyView)
  const notes = signal<readonly Note[]>([])
  const filesFound = signal<number | null>(null)
  const uploader = signal<Uploader | null>(null)
  const tray = signal<ComponentType | null>(null)
  let loading: Promise<Uploader> | null = null
  let closed = false
  let lastNote = 0

  async function load(): Promise<Uploader> {
    await options.untilReached(() => notify(strings.adding.delayed))
    // Refusals name the limits of the token. The tray is there before the first upload, during which the server may be lost.
    const [{ createUploader }] = await Promise.all([
      import('./uploader/uploader.ts'),
      loadTexts('links', 'uploads'),
      importTray(),
    ])
    const created = createUploader({
      bucket,
      client,
      largeFileClient: options.largeFileClient,
      limitsNow: async () => (await options.limitsNow?.()) ?? null,
      onChange(next) {
        if (closed) return
        const before = view.value.totals
        view.value = next
        const { left, done } = next.totals
        if (done > before.done) options.onUploaded(left === 0)
      },
      onRefused(status) {
        if (closed) return
        if (status === 401) options.onUnauthorized()
        if (status === 507 || status === 404) options.onBucketRefused()
      },
      onUnreachable: () => !closed && options.onUnreachable(),
    })
    uploader.value = created
    return created
  }

  async function importTray(): Promise<void> {
    tray.value ??= (await options.importTray?.()) ?? null
  }

  function loaded(): Promise<Uploader> {
    loading ??= load().catch((error: unknown) => {
      loading = null
      throw error
    })
    return loading
  }

  function addNotes(...added: readonly NewNote[]): void {
    notes.value = [...notes.value, ...added.map((note) => ({ ...note, id: ++lastNote }))]
  }

  async function upload({ files, skipped }: Chosen): Promise<void> {
    addNotes(...skippedNotes(skipped))
    if (files.length === 0) return
    if (options.onChosen) options.onChosen(files)
    else await send(files)
  }

  async function send(files: readonly ChosenFile[]): Promise<void> {
    try {
      const { add } = await loaded()
      const duplicates = await add(files)
      if (duplicates.length > 0) addNotes(duplicatesNote(duplicates, () => void add(duplicates, true)))
    } catch {
      notify(strings.adding.notLoaded, 'bad')
    }
  }

  const refuse = () => notify(strings.adding.notAllowed, 'bad')

  // Registered during uploads only: people ignore a page that always asks.
  const askBeforeLeaving = (event: BeforeUnloadEvent) => {
    const losesNothing = filesFound.value === null && uploader.value?.hasSavedAll()
    uploader.value?.saveNow()
    if (!losesNothing) event.preventDefault()
  }
  const stopAsking = effect(() => {
    if (view.value.totals.left > 0 || filesFound.value !== null)
      addEventListener('beforeunload', askBeforeLeaving)
    else removeEventListener('beforeunload', askBeforeLeaving)
  })

  return {
    view,
    tray,
    async loadTray() {
      await options.untilReached()
      await importTray()
    },
    notes,
    filesFound,
    allowed,
    uploader,
    async add(files) {
      if (files.length === 0) return
      if (!allowed) return refuse()
      await upload(chosenByInput(files))
    },
    send,
    async addDropped(transfer) {
      if (!allowed) return refuse()
      const found = droppedFiles(transfer, (count) => {
        filesFound.value = count
      })
      try {
        await upload(await found)
      } finally {
        filesFound.value = null
      }
    },
    dismiss(id) {
      notes.value = notes.value.filter((note) => note.id !== id)
    },
    async resumeUnfinished() {
      if (!allowed || !(await hasUnfinishedUploads(bucket)) || closed) return
      const count = await loaded().then(
        ({ restore }) => restore(),
        () => 0,
      )
      if (count > 0) notify(strings.uploads.continued(count))
    },
    onServerBack: () => uploader.value?.onServerBack(),
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
