import type { Client } from './client.ts'
import type { Media } from './media.ts'
import type { ResumeStore } from './resume-store.ts'
import { Store } from './store.ts'
import { randomKey, type UploadOptions } from './upload.ts'

/** A file and the name to store, which may be a path (`album/a.jpg`). */
export interface NamedFile {
  readonly file: File
  readonly filename: string
}

/** One file of a queue, at one moment. */
export interface QueuedUpload {
  /** Of this upload, not of the item: the argument of `pause`, `resume`, `retry` and `cancel`. */
  readonly id: string
  readonly filename: string
  readonly file: File
  readonly status: 'waiting' | 'sending' | 'paused' | 'done' | 'failed'
  /** Bytes. */
  readonly sent: number
  /** Bytes. */
  readonly total: number
  /** The item; null unless the status is `done`. */
  readonly media: Media | null
  /** Why the upload failed; null unless the status is `failed`. A `ProblemError` has the reason of the service. */
  readonly error: Error | null
}

/** A queue at one moment. */
export interface UploadQueueState {
  /** In the order in which they were added. */
  readonly uploads: readonly QueuedUpload[]
  /** Bytes of all uploads that have not failed. */
  readonly sent: number
  readonly total: number
  /** Whether uploads are waiting or being sent. */
  readonly isSending: boolean
}

/** The options of all uploads of a queue. They are read when an upload begins. */
export interface UploadQueueOptions
  extends Pick<UploadOptions, 'labels' | 'expiresAt' | 'firstChunkSize' | 'resume'> {
  /**
   * Larger files are resumable uploads: after a pause they continue where they were, smaller ones start again. Bytes. Default: 1 048 576.
   */
  readonly piecesAbove?: number | undefined
  /** Files that are sent at the same time. With 1, items have the order of the files. Default: 3. */
  readonly concurrency?: number | undefined
  /** Called with each item that is stored. */
  readonly onStored?: ((media: Media, upload: QueuedUpload) => void) | undefined
}

interface Entry {
  upload: QueuedUpload
  /** The resumable upload of the service; null if there is none. */
  uploadId: string | null
  /** Of the request in flight, until it has ended; null if there is none. */
  aborting: AbortController | null
  /** All attempts of one upload have the same key, so that a file is not stored twice. */
  readonly idempotencyKey: string
  /** Whether a later upload of the file continues this one. */
  isKept: boolean
}

/** Creates a queue. Sends no request before files are added. A function is called for the current options. */
export const createUploadQueue = (
  client: Client,
  options: UploadQueueOptions | (() => UploadQueueOptions) = {},
): UploadQueue => new UploadQueue(client, typeof options === 'function' ? options : () => options)

/** Uploads of several files, each of which can be paused, resumed, tried again and cancelled. Without an id, these methods concern all uploads. */
export class UploadQueue extends Store<UploadQueueState> {
  readonly #client: Client
  readonly #options: () => UploadQueueOptions
  readonly #entries = new Map<string, Entry>()
  #sending = 0
  #lastId = 0

  constructor(client: Client, options: () => UploadQueueOptions) {
    super({ uploads: [], sent: 0, total: 0, isSending: false })
    this.#client = client
    this.#options = options
  }

  /** Adds files and starts to send them. Returns the ids of their uploads. */
  add(files: Iterable<File | NamedFile>): readonly string[] {
    const ids = Array.from(files, (given) => {
      const { file, filename } = 'file' in given ? given : { file: given, filename: given.name }
      this.#lastId += 1
      const id = `${this.#lastId}`
      this.#entries.set(id, {
        upload: {
          ...{ id, filename, file, status: 'waiting', sent: 0, total: file.size },
          ...{ media: null, error: null },
        },
        uploadId: null,
        aborting: null,
        idempotencyKey: randomKey(),
        isKept: false,
      })
      return id
    })
    this.#changed()
    this.#sendNext()
    return ids
  }

  /** Stops uploads that wait or are being sent. A file of one request whose bytes have all been sent is not stopped: it may be stored already. */
  pause(id?: string): void {
    for (const entry of this.#chosen(id, 'waiting', 'sending')) {
      if (entry.upload.status === 'sending' && this.#mayBeStored(entry)) continue
      this.#set(entry, { status: 'paused' })
      entry.aborting?.abort()
    }
    this.#changed()
  }

  /** Continues paused uploads. */
  resume(id?: string): void {
    this.#wait(this.#chosen(id, 'paused'))
  }

  /** Sends uploads that failed again. A resumable upload continues where it was. */
  retry(id?: string): void {
    this.#wait(this.#chosen(id, 'failed'))
  }

  /** Removes uploads that are not done, and what was sent of them. An item that is stored in this moment stays. */
  cancel(id?: string): void {
    for (const entry of this.#chosen(id, 'waiting', 'sending', 'paused', 'failed')) {
      this.#entries.delete(entry.upload.id)
      if (entry.aborting === null) this.#deleteUpload(entry)
      else entry.aborting.abort()
    }
    this.#changed()
    this.#sendNext()
  }

  /** Removes uploads that are done from the list. Their items stay. */
  clear(): void {
    for (const { upload } of this.#chosen(undefined, 'done')) this.#entries.delete(upload.id)
    this.#changed()
  }

  /** Stops all uploads, because their page or component is closed. With the option `resume`, a later upload of a file continues. */
  close(): void {
    const isKept = this.#options().resume !== undefined
    for (const entry of this.#entries.values()) entry.isKept = isKept
    this.cancel()
  }

  #chosen(id: string | undefined, ...statuses: QueuedUpload['status'][]): Entry[] {
    return [...this.#entries.values()].filter(
      ({ upload }) => (id === undefined || upload.id === id) && statuses.includes(upload.status),
    )
  }

  #wait(entries: readonly Entry[]): void {
    for (const entry of entries) this.#set(entry, { status: 'waiting', error: null })
    this.#changed()
    this.#sendNext()
  }

  #set(entry: Entry, change: Partial<QueuedUpload>): void {
    entry.upload = { ...entry.upload, ...change }
  }

  #changed(): void {
    const uploads = Array.from(this.#entries.values(), ({ upload }) => upload)
    let [sent, total] = [0, 0]
    for (const upload of uploads) {
      if (upload.status === 'failed') continue
      sent += upload.sent
      total += upload.total
    }
    const isSending = uploads.some(({ status }) => status === 'waiting' || status === 'sending')
    this.replaceState({ uploads, sent, total, isSending })
  }

  /** Starts as many uploads as may be sent at the same time. */
  #sendNext(): void {
    const { concurrency = 3 } = this.#options()
    for (const entry of this.#entries.values()) {
      if (this.#sending >= concurrency) return
      // The aborted request of an upload that was paused and resumed ends first.
      if (entry.upload.status === 'waiting' && entry.aborting === null) void this.#send(entry)
    }
  }

  async #send(entry: Entry): Promise<void> {
    const aborting = new AbortController()
    entry.aborting = aborting
    this.#sending += 1
    this.#set(entry, { status: 'sending', error: null })
    this.#changed()
    try {
      const media = await this.#upload(entry, aborting.signal)
      this.#set(entry, { status: 'done', sent: entry.upload.total, media })
    } catch (error) {
      if (!aborting.signal.aborted) this.#set(entry, { status: 'failed', error: asError(error) })
    }
    entry.aborting = null
    this.#sending -= 1
    const isListed = this.#entries.has(entry.upload.id)
    const { media } = entry.upload
    if (!isListed && media === null) this.#deleteUpload(entry)
    this.#changed()
    this.#sendNext()
    if (isListed && media !== null) this.#options().onStored?.(media, entry.upload)
  }

  async #upload(entry: Entry, signal: AbortSignal): Promise<Media> {
    const { labels, expiresAt, firstChunkSize, resume, piecesAbove = defaultPiecesAbove } = this.#options()
    const { id, file, filename } = entry.upload
    return await this.#client.upload(file, {
      filename,
      labels,
      expiresAt,
      firstChunkSize,
      piecesAbove,
      signal,
      idempotencyKey: entry.idempotencyKey,
      resume: resumeStoreOf(entry, resume),
      // Without a store of the page, the id of the upload is all that is needed.
      fingerprint: resume === undefined ? id : undefined,
      onProgress: ({ sent }) => {
        if (signal.aborted) return
        this.#set(entry, { sent: Math.min(sent, entry.upload.total) })
        this.#changed()
      },
    })
  }

  #mayBeStored({ upload, uploadId }: Entry): boolean {
    return uploadId === null && upload.sent === upload.total
  }

  /**
   * Ends the resumable upload of an entry that is cancelled, so that its space is free at once. It expires anyway. One whose bytes have all been
   * sent may be an item already, which would be deleted with it.
   */
  #deleteUpload({ upload, uploadId, isKept }: Entry): void {
    if (uploadId !== null && !isKept && upload.sent < upload.total)
      this.#client.deleteUpload(uploadId).catch(() => {})
  }
}

const defaultPiecesAbove = 1_048_576

/** Keeps the id of a resumable upload with its entry, also for the next attempt, and in the store of the page if it has one. */
function resumeStoreOf(entry: Entry, store: ResumeStore | undefined): ResumeStore {
  return {
    async get(key) {
      entry.uploadId ??= (await store?.get(key)) ?? null
      return entry.uploadId
    },
    async set(key, uploadId) {
      entry.uploadId = uploadId
      await store?.set(key, uploadId)
    },
    async remove(key) {
      await store?.remove(key)
    },
  }
}

const asError = (error: unknown): Error => (error instanceof Error ? error : new Error(String(error)))
