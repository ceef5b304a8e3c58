import { randomUUID } from 'node:crypto'
import type {
  AnswerError,
  CallOptions,
  Client,
  Labels,
  Media,
  ProblemError,
  UploadAllOptions,
  UploadProgress,
} from '@mediabucket/client'
import { CommandError } from './command.ts'
import { DiskFile, type LocalFile } from './local-files.ts'
import type { Batch, StoredItem, UploadJournal } from './upload-state.ts'

/** A file to upload, with its position in the order of the command. */
export interface PlannedFile extends LocalFile {
  readonly index: number
  /** Changes with the file's path, size and time, and differs if a file is passed twice. */
  readonly fingerprint: string
}

/** The files of one request, or a large file, which takes several requests. */
export interface UploadUnit {
  readonly files: readonly PlannedFile[]
  /** A request of an earlier run without a response, which is repeated with its key; null for a new request. */
  readonly unanswered: Batch | null
}

/** Larger files are resumable uploads. Bytes. */
export const resumableAbove = 16_000_000

/** The maximum files and bytes of one form: it is read into memory, and sent again from its beginning after an interruption. */
const formFiles = 100
const formBytes = 8_000_000

/** The units in the order in which their items are to be listed. */
export function planUnits(
  files: readonly PlannedFile[],
  unanswered: readonly Batch[],
): readonly UploadUnit[] {
  const byFingerprint = new Map(files.map((file) => [file.fingerprint, file]))
  const again = unanswered.map((batch) => ({
    files: batch.files.flatMap((fingerprint) => byFingerprint.get(fingerprint) ?? []),
    unanswered: batch,
  }))
  const repeated = new Set(again.flatMap(({ files }) => files))
  const units: { files: PlannedFile[]; unanswered: Batch | null }[] = []
  let bytes = 0
  for (const file of files) {
    if (repeated.has(file)) continue
    const last = units.at(-1)
    bytes += file.size
    if (last && last.files.length < formFiles && bytes <= formBytes) last.files.push(file)
    else {
      units.push({ files: [file], unanswered: null })
      bytes = file.size
    }
  }
  return [...again.filter(({ files }) => files.length > 0), ...units]
}

/** The result of a file; `lost` if the service stored it, but the response with its item was lost. */
export type Result = StoredItem | 'lost' | { readonly error: unknown }

/** A file that was read. */
interface ReadyFile {
  readonly file: PlannedFile
  readonly source: DiskFile | Uint8Array
}

/** A unit whose files were read. */
export interface ReadyUnit {
  readonly files: readonly ReadyFile[]
  readonly batch: Batch
  /** An earlier run has sent the batch without receiving a response. */
  readonly isRepeated: boolean
  /** The results of files that were stored before or cannot be read. */
  readonly results: Map<PlannedFile, Result>
}

/** Files that are read, and items that are requested, at a time. */
const readConcurrency = 16

interface SmallUploadParts {
  readonly client: Client
  readonly journal: UploadJournal
  /** When the items expire; null for the settings of the bucket. */
  readonly expiresAt: Date | null
  readonly labels?: Labels | undefined
}

/**
 * Uploads files that are not resumable uploads: several in one form, a single one as the body of its request. The journal prevents
 * a repeated run from storing a file twice.
 */
export class SmallUploads {
  readonly #parts: SmallUploadParts

  constructor(parts: SmallUploadParts) {
    this.#parts = parts
  }

  /** Reads the files, sets the `results` of those that are not uploaded, and records the request in the journal. */
  async prepare(
    { files, unanswered }: UploadUnit,
    signal: AbortSignal,
    results: ReadyUnit['results'],
  ): Promise<ReadyUnit> {
    const ready = new Map<PlannedFile, ReadyFile>()
    await forEach(files, readConcurrency, async (file) => {
      const stored = await this.#storedBefore(file, signal)
      if (stored) return results.set(file, stored)
      try {
        return ready.set(file, { file, source: await readFile(file) })
      } catch (error) {
        return results.set(file, { error })
      }
    })
    const inOrder = files.flatMap((file) => ready.get(file) ?? [])
    const fingerprints = inOrder.map(({ file }) => file.fingerprint)
    const isSame = unanswered !== null && unanswered.files.length === fingerprints.length
    const batch = isSame ? unanswered : { key: unanswered?.key ?? randomUUID(), files: fingerprints }
    if (!isSame && inOrder.length > 0) await this.#parts.journal.sending(batch)
    return { files: inOrder, batch, isRepeated: unanswered !== null, results }
  }

  /** Sets the results of the files. Throws the reason why files without a result are not stored. */
  async store(
    unit: ReadyUnit,
    options: { readonly signal: AbortSignal; readonly onProgress: (progress: UploadProgress) => void },
  ): Promise<void> {
    const { files, batch, isRepeated, results } = unit
    if (files.length === 0) return
    try {
      const items = await this.#post(batch, files, options)
      for (const [index, { file }] of files.entries()) results.set(file, items[index] ?? 'lost')
      if (isRepeated) await this.#storeDeleted(unit, options.signal)
    } catch (error) {
      if (isRepeated && isReusedKey(error)) {
        // The earlier run stored these files together with one that has changed since.
        await this.#parts.journal.answered(batch, null)
        for (const { file } of files) results.set(file, 'lost')
      } else if (files.length > 1 && isRefused(error) && !isResponseError(error, [401, 403])) {
        await this.#storeEach(files, results, options.signal)
      } else throw error
    }
  }

  /** The item that an earlier run stored, if it still exists; null to upload the file. */
  async #storedBefore(file: PlannedFile, signal: AbortSignal): Promise<Result | null> {
    const stored = this.#parts.journal.stored(file.fingerprint)
    if (stored === null || stored === 'lost') return stored
    return (await exists(this.#parts.client, stored, signal)) ? stored : null
  }

  /** Sends the files of a batch in one request. */
  async #post(
    batch: Batch,
    files: readonly ReadyFile[],
    options: PostOptions,
  ): Promise<readonly StoredItem[]> {
    const { client, journal, expiresAt, labels } = this.#parts
    const callOptions = { ...options, idempotencyKey: batch.key, expiresAt: expiresAt ?? undefined, labels }
    try {
      const media = await send(client, files, callOptions)
      if (media.length !== files.length)
        throw new CommandError(`the service returned ${media.length} items for ${files.length} files`)
      const items = media.map(({ id, url, size, filename, sha256 }) => ({ id, url, size, filename, sha256 }))
      await journal.answered(batch, items)
      return items
    } catch (error) {
      // If a retry was refused, the first attempt may have been stored.
      if (isRefused(error) && error.attempts === 1) await journal.refused(batch)
      throw error
    }
  }

  /** Uploads each file in a separate request. */
  async #storeEach(
    files: readonly ReadyFile[],
    results: ReadyUnit['results'],
    signal: AbortSignal,
  ): Promise<void> {
    for (const ready of files) {
      const batch = { key: randomUUID(), files: [ready.file.fingerprint] }
      try {
        await this.#parts.journal.sending(batch)
        const [item] = await this.#post(batch, [ready], { signal })
        if (item) results.set(ready.file, item)
      } catch (error) {
        if (!isRefused(error) || isResponseError(error, [401, 403])) throw error
        results.set(ready.file, { error })
      }
    }
  }

  /** Uploads again the files whose items, stored by an earlier run, were deleted since. */
  async #storeDeleted({ files, results }: ReadyUnit, signal: AbortSignal): Promise<void> {
    const deleted = new Set<ReadyFile>()
    await forEach(files, readConcurrency, async (ready) => {
      const result = results.get(ready.file)
      if (typeof result !== 'object' || 'error' in result) return
      if (await exists(this.#parts.client, result, signal)) return
      results.delete(ready.file)
      deleted.add(ready)
    })
    await this.#storeEach(
      files.filter((ready) => deleted.has(ready)),
      results,
      signal,
    )
  }
}

type PostOptions = CallOptions & { readonly onProgress?: (progress: UploadProgress) => void }

/** Sends one file as the body of a request, or several as a form. */
async function send(
  client: Client,
  files: readonly ReadyFile[],
  options: PostOptions & UploadAllOptions,
): Promise<readonly Media[]> {
  const parts = files.map(({ file: { name }, source }) => ({ source, filename: name }))
  const [only, ...others] = parts
  if (only && others.length === 0)
    return [await client.upload(only.source, { ...options, ...only, piecesAbove: Number.POSITIVE_INFINITY })]
  const read = parts.flatMap(({ source, ...part }) =>
    source instanceof Uint8Array ? { source, ...part } : [],
  )
  return client.uploadAll(read, options)
}

async function exists(client: Client, { id }: StoredItem, signal: AbortSignal): Promise<boolean> {
  try {
    await client.describe(id, { signal })
    return true
  } catch (error) {
    if (isResponseError(error, [404])) return false
    throw error
  }
}

/** The bytes of a file, if they fit into a form. */
async function readFile({ path, version }: PlannedFile): Promise<DiskFile | Uint8Array> {
  const source = await DiskFile.at(path)
  if (source.version !== version)
    throw new CommandError('the file changed during the upload; upload it again')
  return source.size > formBytes ? source : new Uint8Array(await source.arrayBuffer())
}

type ResponseError = Error & Pick<AnswerError, 'status' | 'attempts'> & Partial<Pick<ProblemError, 'problem'>>

/** Errors are recognized by their names, so that the client does not have to be loaded. */
const isResponseError = (error: unknown, statuses?: readonly number[]): error is ResponseError =>
  error instanceof Error &&
  (error.name === 'AnswerError' || error.name === 'ProblemError') &&
  'status' in error &&
  typeof error.status === 'number' &&
  (statuses?.includes(error.status) ?? true)

/** Permanent errors of the request: nothing was stored. */
const isRefused = (error: unknown): error is ResponseError =>
  isResponseError(error) &&
  (error.status === 507 || (error.status < 500 && error.status !== 408 && error.status !== 429))

const isReusedKey = (error: unknown): boolean =>
  isResponseError(error, [422]) && error.problem?.code === 'idempotency-key-reused'

/** Runs `work` for each item, for `limit` of them at a time. */
export async function forEach<T>(
  items: Iterable<T>,
  limit: number,
  work: (item: T) => Promise<unknown>,
): Promise<void> {
  const waiting = items[Symbol.iterator]()
  async function drain(): Promise<void> {
    for (const item of { [Symbol.iterator]: () => waiting }) await work(item)
  }
  await Promise.all(Array.from({ length: limit }, drain))
}
