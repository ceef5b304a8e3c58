import { randomUUID } from 'node:crypto'
import { basename } from 'node:path'
import type { AnswerError, CallOptions, Client, ProblemError, UploadProgress } from '@mediabucket/client'
import { CommandError } from '../command.ts'
import { DiskFile } from './disk-file.ts'
import type { Batch, StoredItem, UploadJournal } from './upload-journal.ts'
import { formBytes, type PlannedFile, type UploadUnit } from './upload-units.ts'

/** What became of a file; `lost` where the service stores it and the answer that names its item is lost. */
export type Result = StoredItem | 'lost' | { readonly error: unknown }

/** A file that is ready to be sent. */
interface ReadyFile {
  readonly file: PlannedFile
  readonly source: DiskFile | Uint8Array
}

/** A unit whose files are read. */
export interface ReadyUnit {
  readonly files: readonly ReadyFile[]
  readonly batch: Batch
  /** An earlier run has sent the batch, and received no answer. */
  readonly isRepeated: boolean
  /** Of files that need not or cannot be sent. */
  readonly results: Map<PlannedFile, Result>
}

/** Files read, and items asked for, at a time. */
const readAtOnce = 16

/**
 * Stores files that are no resumable uploads: several in one form, a single one as the body of its request. The journal
 * keeps a run that is repeated from storing any of them twice.
 */
export function smallUploads({
  client,
  journal,
}: {
  readonly client: Client
  readonly journal: UploadJournal
}) {
  /** The item that an earlier run stored, as far as it is still there; null to send the file. */
  async function storedBefore(file: PlannedFile, signal: AbortSignal): Promise<Result | null> {
    const stored = journal.stored(file.fingerprint)
    if (stored === null || stored === 'lost') return stored
    return (await isThere(stored, signal)) ? stored : null
  }

  async function isThere({ id }: StoredItem, signal: AbortSignal): Promise<boolean> {
    try {
      await client.describe(id, { signal })
      return true
    } catch (error) {
      if (isAnswer(error, [404])) return false
      throw error
    }
  }

  async function read({ path, version }: PlannedFile): Promise<DiskFile | Uint8Array> {
    const source = await DiskFile.at(path)
    if (source.version !== version)
      throw new CommandError('it has changed since the upload began; send it again')
    return source.size > formBytes ? source : new Uint8Array(await source.arrayBuffer())
  }

  async function post(
    batch: Batch,
    files: readonly ReadyFile[],
    options: CallOptions & { readonly onProgress?: (progress: UploadProgress) => void },
  ): Promise<readonly StoredItem[]> {
    const parts = files.map(({ file: { path }, source }) => ({
      source,
      filename: basename(path),
    }))
    const given = { ...options, idempotencyKey: batch.key }
    try {
      const [only, ...others] = parts
      const media =
        only && others.length === 0
          ? [await client.upload(only.source, { ...given, ...only, piecesAbove: Number.POSITIVE_INFINITY })]
          : await client.uploadAll(
              parts.flatMap(({ source, ...part }) =>
                source instanceof Uint8Array ? { source, ...part } : [],
              ),
              given,
            )
      if (media.length !== files.length)
        throw new CommandError(`the service answers ${media.length} items for ${files.length} files`)
      const items = media.map(({ id, url, size }) => ({ id, url, size }))
      await journal.answered(batch, items)
      return items
    } catch (error) {
      // A first try may have been stored where a later one was refused.
      if (isRefused(error) && error.attempts === 1) await journal.refused(batch)
      throw error
    }
  }

  /** Stores each file with a request of its own. */
  async function storeEach(
    files: readonly ReadyFile[],
    results: ReadyUnit['results'],
    signal: AbortSignal,
  ): Promise<void> {
    for (const ready of files) {
      const batch = { key: randomUUID(), files: [ready.file.fingerprint] }
      try {
        await journal.sending(batch)
        const [item] = await post(batch, [ready], { signal })
        if (item) results.set(ready.file, item)
      } catch (error) {
        if (!isRefused(error) || isAnswer(error, [401, 403])) throw error
        results.set(ready.file, { error })
      }
    }
  }

  /** Of items that the service may have stored for an earlier run: what has been deleted since is stored again. */
  async function storeDeleted({ files, results }: ReadyUnit, signal: AbortSignal): Promise<void> {
    const deleted = new Set<ReadyFile>()
    await forEach(files, readAtOnce, async (ready) => {
      const result = results.get(ready.file)
      if (typeof result !== 'object' || 'error' in result || (await isThere(result, signal))) return
      results.delete(ready.file)
      deleted.add(ready)
    })
    await storeEach(
      files.filter((ready) => deleted.has(ready)),
      results,
      signal,
    )
  }

  return {
    /** Reads the files, sets the `results` of those that are not to be sent, and enters the request that is to store them in the journal. */
    async prepare(
      { files, unanswered }: UploadUnit,
      signal: AbortSignal,
      results: ReadyUnit['results'],
    ): Promise<ReadyUnit> {
      const ready = new Map<PlannedFile, ReadyFile>()
      await forEach(files, readAtOnce, async (file) => {
        const stored = await storedBefore(file, signal)
        if (stored) return results.set(file, stored)
        try {
          return ready.set(file, { file, source: await read(file) })
        } catch (error) {
          return results.set(file, { error })
        }
      })
      const inOrder = files.flatMap((file) => ready.get(file) ?? [])
      const fingerprints = inOrder.map(({ file }) => file.fingerprint)
      const isSame = unanswered !== null && unanswered.files.length === fingerprints.length
      const batch = isSame ? unanswered : { key: unanswered?.key ?? randomUUID(), files: fingerprints }
      if (!isSame && inOrder.length > 0) await journal.sending(batch)
      return { files: inOrder, batch, isRepeated: unanswered !== null, results }
    },

    /** Sets the results of the files. What it throws is the reason why those that have none yet are not stored. */
    async store(
      unit: ReadyUnit,
      options: { readonly signal: AbortSignal; readonly onProgress: (progress: UploadProgress) => void },
    ): Promise<void> {
      const { files, batch, isRepeated, results } = unit
      if (files.length === 0) return
      try {
        const items = await post(batch, files, options)
        for (const [index, { file }] of files.entries()) results.set(file, items[index] ?? 'lost')
        if (isRepeated) await storeDeleted(unit, options.signal)
      } catch (error) {
        if (isRepeated && isReusedKey(error)) {
          // The earlier run has stored these files, beside one that has changed since.
          await journal.answered(batch, null)
          for (const { file } of files) results.set(file, 'lost')
        } else if (files.length > 1 && isRefused(error) && !isAnswer(error, [401, 403])) {
          await storeEach(files, results, options.signal)
        } else throw error
      }
    },
  }
}

type Answer = Error & Pick<AnswerError, 'status' | 'attempts'> & Partial<Pick<ProblemError, 'problem'>>

/** Errors are known by their names, so that the client need not be loaded for it. */
const isAnswer = (error: unknown, statuses?: readonly number[]): error is Answer =>
  error instanceof Error &&
  (error.name === 'AnswerError' || error.name === 'ProblemError') &&
  'status' in error &&
  typeof error.status === 'number' &&
  (statuses?.includes(error.status) ?? true)

/** Answers that are about the request, not about the moment: nothing of it is stored. */
const isRefused = (error: unknown): error is Answer =>
  isAnswer(error) &&
  (error.status === 507 || (error.status < 500 && error.status !== 408 && error.status !== 429))

const isReusedKey = (error: unknown): boolean =>
  isAnswer(error, [422]) && error.problem?.code === 'idempotency-key-reused'

async function forEach<T>(
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
