import { MediabucketError, type ResumeStore, type UploadProgress } from '@mediabucket/client'
import { type FileReader, maxFormFileSize, type ReadFile } from './file-reader.ts'
import type { Outcomes, SendOptions } from './outcomes.ts'
import type { UploadEntry, UploadList } from './upload-list.ts'

/** The request in progress. */
export interface CurrentRequest {
  readonly entries: readonly UploadEntry[]
  /** Stops it unless it was sent completely; files that were not stored are sent again. */
  readonly stop: () => void
  readonly cancel: () => void
  /** The time of its last progress. Milliseconds since 1970. */
  progressAt: number
}

/** The parts of the send queue that the senders use. */
export interface SendContext {
  readonly list: UploadList
  readonly reader: FileReader
  readonly outcomes: Outcomes
  readonly options: SendOptions
  /** Resolves when the queue is not paused; with false if it was closed. */
  untilResumed(): Promise<boolean>
  begin(request: CurrentRequest): void
}

/** Of one form. The server accepts 1,000 files by default. */
const [maxFiles, maxBytes] = [100, 4_194_304]

/** The next files for one form: consecutive ones, so that the listing keeps their order. */
export function nextForm(waiting: Iterable<UploadEntry>): UploadEntry[] {
  const form: UploadEntry[] = []
  let bytes = 0
  for (const entry of waiting) {
    bytes += entry.size
    // Files that a closed page sent with one key stay together, because the server may have stored them.
    if (form[0] && entry.form?.key !== form[0].form?.key) break
    if (form.length === maxFiles || entry.size > maxFormFileSize || bytes > maxBytes) break
    form.push(entry)
  }
  return form
}

/** The Idempotency-Key with which exactly these files were sent before; null if they were not. */
function formerKey(entries: readonly UploadEntry[]): string | null {
  const form = entries[0]?.form ?? null
  const same = form?.count === entries.length && entries.every((entry) => entry.form?.key === form.key)
  return same ? form.key : null
}

/** Sends files in one form. If it is refused, each half is sent again, until only the files at fault have failed. */
export async function sendSmallFiles(context: SendContext, all: readonly ReadFile[]): Promise<void> {
  const { list, outcomes, options } = context
  const files = all.filter(({ entry }) => outcomes.hasRoom(entry))
  if (files.length === 0) return
  const entries = files.map(({ entry }) => entry)
  const listed = () => entries.filter(({ id }) => list.get(id))
  // All tries use one key, so that a form whose response was lost is not stored twice.
  let former = formerKey(entries)
  let idempotencyKey = former ?? randomKey()
  for (const entry of entries) entry.form = { key: idempotencyKey, count: entries.length }
  options.onSending(entries)
  for (let tries = 1; await context.untilResumed(); ) {
    if (listed().length === 0) return
    const aborting = new AbortController()
    let complete = false
    const request = {
      entries,
      // A complete form may be stored already, so wait for its response.
      stop: () => !complete && aborting.abort(),
      cancel: () => aborting.abort(),
      progressAt: Date.now(),
    }
    context.begin(request)
    const onProgress = (share: number) => {
      complete = share === 1
      request.progressAt = Date.now()
      for (const entry of listed()) list.update(entry, { sent: Math.floor(entry.size * share) })
      options.onChange()
    }
    const { signal } = aborting
    try {
      const form = files.map(({ entry, bytes }) => ({
        source: bytes,
        filename: entry.path,
        contentType: entry.contentType,
      }))
      const onSent = ({ sent, total }: UploadProgress) => onProgress(total ? sent / total : 0)
      const media = await options.client.uploadAll(form, { idempotencyKey, signal, onProgress: onSent })
      return outcomes.stored(entries, media)
    } catch (error) {
      for (const entry of listed()) list.update(entry, { sent: 0 })
      if (signal.aborted) continue
      const refused = await outcomes.waitForRetry(error, tries)
      tries += 1
      if (refused === null) continue
      if (refused.status === 422 && former !== null) {
        // The files differ from those that an earlier visit sent with this key.
        former = null
        idempotencyKey = randomKey()
        continue
      }
      for (const entry of entries) entry.form = null
      if (entries.length === 1 || appliesToAll.has(refused.status)) {
        for (const entry of entries) outcomes.refused(entry, refused)
        return
      }
      const middle = Math.ceil(files.length / 2)
      await sendSmallFiles(context, files.slice(0, middle))
      return await sendSmallFiles(context, files.slice(middle))
    }
  }
}

/** Statuses that apply to all files: an invalid token, or an unreadable response (0), after which anything may be stored. */
const appliesToAll = new Set([0, 401, 403])

const randomKey = (): string =>
  Array.from(crypto.getRandomValues(new Uint32Array(4)), (part) => part.toString(16)).join('-')

/** A pause or a lost connection loses what was sent of one chunk. Bytes. */
const firstChunkSize = 2 * 1_048_576

/** Sends one file as a resumable upload, until it is stored, refused, paused or cancelled. */
export async function sendLargeFile(context: SendContext, entry: UploadEntry): Promise<void> {
  const { list, reader, outcomes, options } = context
  /** Keeps the id of the upload with the entry, from which the next try, or a later visit, continues. */
  const resume: ResumeStore = {
    get: () => entry.uploadId,
    set(_, id) {
      entry.uploadId = id
      options.onSending([entry])
    },
    remove: () => undefined,
  }
  for (let tries = 1; await context.untilResumed(); tries += 1) {
    // It may have been paused or cancelled while waiting.
    if (list.get(entry.id)?.state !== 'sending') return
    const file = await reader.readableFile(entry)
    if (file === null) return
    const sentBefore = entry.sent
    const aborting = new AbortController()
    const stop = () => aborting.abort()
    const request = { entries: [entry], stop, cancel: stop, progressAt: Date.now() }
    context.begin(request)
    try {
      const item = await options.largeFileClient.upload(file, {
        filename: entry.path,
        contentType: entry.contentType || undefined,
        piecesAbove: 0,
        firstChunkSize,
        resume,
        fingerprint: entry.id,
        signal: aborting.signal,
        onProgress({ sent }) {
          request.progressAt = Date.now()
          if (list.get(entry.id)) list.update(entry, { sent })
          options.onChange()
        },
      })
      return outcomes.stored([entry], [item])
    } catch (error) {
      if (aborting.signal.aborted) continue
      if (!(error instanceof MediabucketError)) {
        // The file on the disk changed or vanished.
        const current = await reader.readableFile(entry)
        if (current === null) return
        if (current !== file) continue
      }
      if (entry.sent > sentBefore) tries = 1
      const refused = await outcomes.waitForRetry(error, tries)
      if (refused !== null) return outcomes.refused(entry, refused)
    }
  }
}
