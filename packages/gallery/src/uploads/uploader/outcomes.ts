import { AnswerError, type Client, type Media, type ParameterFault, ProblemError } from '@mediabucket/client'
import { formatSize } from '../../format.ts'
import { kindsText } from '../../limit-texts.ts'
import { isUnreachable } from '../../service/connection.ts'
import { strings } from '../../strings.ts'
import type { UploadEntry, UploadList } from './upload-list.ts'

/** What the senders of files need from the page. */
export interface SendOptions {
  readonly client: Pick<Client, 'uploadAll' | 'deleteUpload'>
  /** Waits longer for responses: to the last bytes of a large file, the server responds when it has stored all of them. */
  readonly largeFileClient: Pick<Client, 'upload'>
  onChange(): void
  onStored(entries: readonly UploadEntry[]): void
  /** The resumable upload or the form of these entries changed, which a later visit needs. */
  onSending(entries: readonly UploadEntry[]): void
  /** No later try of these entries can succeed. */
  onFinal(entries: readonly UploadEntry[]): void
  /** The server did not respond. */
  onUnreachable(): void
  /** The server refused an upload with this status. */
  onRefused(status: number): void
}

/** Why files were not stored. */
interface Refusal {
  /** Of the response; 0 if it cannot be read, after which anything may be stored. */
  readonly status: number
  readonly reason: string
  /** Whether the bucket has as many files as it may have. */
  readonly isItemLimit: boolean
  /** Whether a retry would be refused too. */
  readonly isFinal: boolean
}

/** Changes the state of entries according to the outcome of their request. */
export interface Outcomes {
  stored(entries: readonly UploadEntry[], items: readonly Pick<Media, 'id'>[]): void
  /** The server refused this file. */
  refused(entry: UploadEntry, refusal: Refusal): void
  /** Whether the bucket may have room for the file. If the server has said that it has none, the entry fails. */
  hasRoom(entry: UploadEntry): boolean
  /** Forgets that the bucket is full, because files may have been deleted. */
  forgetFullBucket(): void
  /** Waits and resolves with null if a retry may succeed, otherwise with the refusal. */
  waitForRetry(error: unknown, tries: number): Promise<Refusal | null>
}

export function createOutcomes(list: UploadList, server: ServerWait, options: SendOptions): Outcomes {
  /** The reason for which the bucket is full, and the size from which files do not fit. Bytes. */
  let full: { readonly minSize: number; readonly reason: string; readonly isFinal: boolean } | null = null

  function failed(entry: UploadEntry, { reason, isFinal }: Pick<Refusal, 'reason' | 'isFinal'>): void {
    if (!list.get(entry.id)) return
    Object.assign(entry, { reason, isFinal })
    list.update(entry, { sent: 0 })
    list.move(entry, 'failed')
    if (isFinal) options.onFinal([entry])
  }

  function hasRoom(entry: UploadEntry): boolean {
    if (full === null || entry.size < full.minSize) return true
    failed(entry, full)
    return false
  }

  return {
    hasRoom,
    forgetFullBucket() {
      full = null
    },
    stored(entries, items) {
      for (const [index, entry] of entries.entries()) {
        const item = items[index]
        if (item) entry.itemId = item.id
        if (list.get(entry.id)) list.move(entry, 'done')
        entry.file = null
      }
      options.onStored(entries)
    },
    refused(entry, { status, reason, isItemLimit, isFinal }) {
      failed(entry, { reason, isFinal })
      options.onRefused(status)
      if (status !== 507) return
      // Files of at least this size do not fit either; if the number of files is the limit, no file fits.
      full = { minSize: isItemLimit ? 0 : entry.size, reason, isFinal }
      for (const other of [...list.in('waiting')]) hasRoom(other)
    },
    async waitForRetry(error, tries) {
      // The server itself responds with a problem, and says when to retry.
      const isBusy = error instanceof ProblemError && error.status === 503
      if (isUnreachable(error) && !isBusy) {
        options.onUnreachable()
        const back = server.untilBack()
        options.onChange()
        await back
        return null
      }
      if (!(error instanceof AnswerError))
        return { status: 0, reason: strings.uploads.unknown, isItemLimit: false, isFinal: false }
      const delay = delayAfter(error, tries)
      if (delay === null)
        return {
          status: error.status,
          reason: refusalMessage(error),
          isItemLimit: exceededLimit(error)?.parameter === 'max_items',
          isFinal: isRefusedByToken(error),
        }
      await server.delay(delay)
      return null
    },
  }
}

/** The limit of the bucket or the token that an upload exceeds, with what it allows (docs/interface.md, P6). */
const exceededLimit = (error: AnswerError): ParameterFault | undefined =>
  error instanceof ProblemError ? error.problem.errors?.[0] : undefined

/** Whether the limits of the token refuse the file, and so every later try. */
function isRefusedByToken(error: AnswerError): boolean {
  const code = error instanceof ProblemError ? error.problem.code : undefined
  const isTooLarge = code === 'file-too-large' && exceededLimit(error)?.parameter === 'max_file_size'
  return isTooLarge || code === 'token-limit-exceeded' || code === 'type-refused'
}

/** Milliseconds to wait before the next try; null if it would be refused too. */
function delayAfter({ status, retryAfter }: AnswerError, tries: number): number | null {
  const isTemporary = status === 429 || status === 503
  if (!isTemporary && (tries > 4 || ![408, 409, 423, 500].includes(status))) return null
  return retryAfter ?? Math.min(8000, 500 * 2 ** (tries - 1))
}

/** The message for a refused file: the limit that it exceeds, or else the server's own text. */
export function refusalMessage(error: AnswerError): string {
  const { status } = error
  const { uploads, files, links } = strings
  if (!(error instanceof ProblemError)) return status === 413 ? uploads.tooLarge : uploads.unknown
  const { problem } = error
  const limit = exceededLimit(error)
  if (problem.code === 'token-limit-exceeded') return limit?.left === 0 ? links.noneLeft : links.tooMuch
  if (problem.code === 'type-refused') return links.wrongType(kindsText(limit?.accepted ?? []))
  const { maximum, unit } = limit ?? problem
  const size = maximum !== undefined && unit === 'bytes' ? formatSize(maximum) : null
  if (status === 413) {
    if (size === null) return uploads.tooLarge
    return limit?.parameter === 'max_file_size' ? links.tooLarge(size) : uploads.tooLargeFor(size)
  }
  if (status === 507 && size !== null) return uploads.noRoom(size)
  if (status === 507 && maximum !== undefined && unit === 'items') return uploads.noRoom(files(maximum))
  return problem.detail ?? problem.title ?? uploads.unknown
}

/** Waits for a server that does not respond, or that asked to wait. */
export interface ServerWait {
  /** Whether the server does not respond. */
  readonly waiting: boolean
  /** Resolves when `end` is called. */
  untilBack(): Promise<void>
  /** Resolves after these milliseconds, or when `end` is called. */
  delay(milliseconds: number): Promise<void>
  /** Ends the current wait. */
  end(): void
}

export function createServerWait(): ServerWait {
  let waiting = false
  let endCurrent = () => {}
  const wait = (milliseconds: number | null) =>
    new Promise<void>((resolve) => {
      const timer = milliseconds === null ? undefined : setTimeout(() => endCurrent(), milliseconds)
      endCurrent = () => {
        clearTimeout(timer)
        waiting = false
        resolve()
      }
    })
  return {
    get waiting() {
      return waiting
    },
    async untilBack() {
      waiting = true
      await wait(null)
    },
    delay: (milliseconds) => wait(milliseconds),
    end: () => endCurrent(),
  }
}
