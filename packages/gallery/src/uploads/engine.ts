import Uppy, { type UppyFile } from '@uppy/core'
import GoldenRetriever from '@uppy/golden-retriever'
import Tus from '@uppy/tus'
import { DefaultHttpStack, type DetailedError, type HttpStack } from 'tus-js-client'
import { strings } from '../strings.ts'
import { ownUploadUrl } from './own-origin.ts'
import { refusal } from './refusal.ts'
import type { UploadRow } from './upload-row.ts'

export interface EngineOptions {
  /** Names what is kept of these uploads. */
  readonly id: string
  readonly token: string
  /** Where uploads begin, on the page's own origin. */
  readonly endpoint: string
  readonly onChange: (rows: UploadRow[]) => void
  /** The service did not answer; `null`, or the status with which it refused a file for good. */
  readonly onFailed: (status: number | null) => void
  /** So many unfinished uploads of before the browser was closed are here again. */
  readonly onRestored: (count: number) => void
}

/** What is loaded with the first upload: Uppy, without its own interface. */
export interface Engine {
  add(files: readonly File[]): void
  /** Pauses what runs, and lets run what is paused. */
  toggle(id: string): void
  pauseAll(): void
  resumeAll(): void
  retry(id: string): void
  /** Tries those again that failed for want of a connection. */
  reconnect(): void
  cancel(id: string): void
  cancelAll(): void
  /** Stops without cancelling, so that a later session can go on. */
  close(): void
}

type Meta = Record<string, unknown>
type Answer = Record<string, unknown>
type Upload = UppyFile<Meta, Answer>

/** Requests that carry bytes at once; browsers have six connections to a host, and the page needs some of them. */
const atOnce = 3

/** What is kept of files, so that uploads go on by themselves after the browser was closed. Bytes. */
const keeping = { name: 'uppy-blobs', maxFileSize: 512 * 2 ** 20, maxTotalSize: 2 * 2 ** 30 }

export function createEngine(options: EngineOptions): Engine {
  const disconnected = new Set<string>()

  const uppy = new Uppy<Meta, Answer>({
    id: options.id,
    autoProceed: true,
    onBeforeFileAdded(file, files) {
      const there = files[file.id]
      if (there === undefined) return true
      // A file that is done becomes another item when it comes again.
      if (there.progress.uploadComplete || there.isGhost)
        return { ...file, error: null, progress: fresh(file) }
      return false
    },
  })

  uppy.use(Tus, {
    endpoint: options.endpoint,
    headers: () => ({ Authorization: `Bearer ${options.token}` }),
    httpStack: ownOriginStack(options.endpoint),
    allowedMetaFields: ['name', 'type'],
    limit: atOnce,
    retryDelays: [0, 1000, 2000, 4000, 8000],
    removeFingerprintOnSuccess: true,
    onShouldRetry(error, _attempt, _options, next) {
      if (error.originalResponse === null) options.onFailed(null)
      // Waiting makes no room.
      return error.originalResponse?.getStatus() !== 507 && next(error)
    },
  })
  uppy.use(GoldenRetriever, { indexedDB: keeping })

  let scheduled: ReturnType<typeof setTimeout> | undefined
  const publish = () => {
    scheduled = undefined
    options.onChange(uppy.getFiles().map(rowOf))
  }
  uppy.on('state-update', () => {
    scheduled ??= setTimeout(publish, 80)
  })
  uppy.on('upload-error', (file, error) => {
    const status = statusOf(error)
    if (file && status === null) disconnected.add(file.id)
    options.onFailed(status)
  })
  uppy.on('restored', () => {
    // These uploads are begun anew here; tus then finds out how far each one is.
    uppy.setState({ currentUploads: {} })
    let count = 0
    for (const file of uppy.getFiles()) {
      if (file.progress.uploadComplete) uppy.removeFile(file.id)
      else {
        count += 1
        uppy.setFileState(file.id, {
          isPaused: false,
          error: null,
          progress: file.isGhost ? begun(file) : fresh(file),
        })
      }
    }
    options.onRestored(count)
    if (uppy.getFiles().some((file) => !file.isGhost)) void uppy.upload()
  })

  return {
    add: (files) =>
      uppy.addFiles(files.map((data) => ({ data, name: data.name, type: data.type, source: 'gallery' }))),
    toggle: (id) => void uppy.pauseResume(id),
    pauseAll: () => uppy.pauseAll(),
    resumeAll: () => uppy.resumeAll(),
    retry: (id) => void uppy.retryUpload(id),
    reconnect() {
      for (const id of disconnected) if (uppy.getFile(id)?.error) void uppy.retryUpload(id)
      disconnected.clear()
    },
    cancel: (id) => uppy.removeFile(id),
    cancelAll: () => uppy.cancelAll(),
    close() {
      clearTimeout(scheduled)
      uppy.pauseAll()
    },
  }
}

/** Sends every request to the page's own origin, whichever the service's answers name. */
function ownOriginStack(endpoint: string): HttpStack {
  const stack = new DefaultHttpStack({})
  return {
    createRequest: (method, url) => stack.createRequest(method, ownUploadUrl(url, endpoint)),
    getName: () => stack.getName(),
  }
}

const fresh = (file: Upload): Upload['progress'] => ({
  uploadStarted: null,
  bytesUploaded: false,
  bytesTotal: file.size,
  percentage: 0,
})

/** Keeps Uppy from sending a file whose bytes it does not have. */
const begun = (file: Upload): Upload['progress'] => ({
  uploadStarted: 1,
  bytesUploaded: file.progress.bytesUploaded || 0,
  bytesTotal: file.size,
})

function rowOf(file: Upload): UploadRow {
  return {
    id: file.id,
    name: file.name,
    contentType: file.type,
    size: file.size ?? 0,
    sent: file.progress.bytesUploaded || 0,
    state: stateOf(file),
    reason: file.error ? reasonOf(file) : '',
  }
}

function stateOf(file: Upload): UploadRow['state'] {
  if (file.progress.uploadComplete) return 'done'
  if (file.isGhost) return 'needed'
  if (file.error) return 'failed'
  if (file.isPaused) return 'paused'
  return file.progress.bytesUploaded ? 'sending' : 'waiting'
}

function reasonOf(file: Upload): string {
  const xhr = file.response?.body?.['xhr']
  if (!(xhr instanceof XMLHttpRequest) || xhr.status === 0) return strings.uploads.connection
  return refusal(xhr.status, xhr.responseText)
}

/** With which status the service refused; null when it did not answer. */
function statusOf(
  error: { readonly originalResponse?: DetailedError['originalResponse'] } | Error,
): number | null {
  return ('originalResponse' in error ? error.originalResponse?.getStatus() : undefined) ?? null
}
