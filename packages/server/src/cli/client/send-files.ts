import { basename, resolve } from 'node:path'
import type { Media } from '@mediabucket/client'
import { formatCount } from '../table.ts'
import type { ClientContext } from './client-command.ts'
import { affectsAllFiles } from './explain-client-error.ts'
import { DiskFile, type LocalFault } from './local-files.ts'
import { type LineFormat, printItem } from './output.ts'
import { createProgressBars, type Progress } from './progress-bars.ts'
import {
  type PlannedFile,
  planUnits,
  type Result,
  resumableAbove,
  smallUploads,
  type UploadUnit,
} from './small-uploads.ts'
import type { UploadJournal, UploadStates } from './upload-state.ts'

/** Units in progress at a time. */
const concurrency = 6

export interface Outcome {
  /** Bytes of each stored file. */
  readonly stored: readonly number[]
  /** How many of them an earlier run stored without receiving the response. */
  readonly lost: number
  /** How many of them have another name than the file. */
  readonly renamed: number
  readonly failed: readonly LocalFault[]
  readonly untried: number
  /** The error that ended the run before every file was tried, or null. */
  readonly end: unknown
}

/**
 * Uploads the files, and prints them in their order, which is also that of the listing: units are read and resumable uploads are
 * sent concurrently, and each is committed after those before it are settled.
 */
export async function sendFiles(
  files: readonly PlannedFile[],
  {
    states,
    journal,
    expiresAt,
    format,
  }: {
    readonly states: UploadStates
    readonly journal: UploadJournal
    readonly expiresAt: Date | null
    readonly format: LineFormat
  },
  context: ClientContext,
): Promise<Outcome> {
  const { client, tokenHash, output, interrupted, explain, report } = context
  const bars = createProgressBars(process.stderr)
  const stopped = new AbortController()
  const signal = AbortSignal.any([interrupted, stopped.signal])
  const small = smallUploads({ client, journal, expiresAt })
  const running = new Map<UploadUnit, Progress>()
  const results = new Array<Result | null>(files.length).fill(null)
  const total = files.reduce((sum, { size }) => sum + size, 0)
  let settled = 0
  let settledBytes = 0
  /** Bytes that an earlier run has sent. */
  let skipped = 0
  let printed = 0
  let end: unknown = null

  function show(): void {
    const inProgress = [...running.values()]
    const done = inProgress.reduce((sum, { done }) => sum + done, settledBytes)
    bars.show([
      ...inProgress,
      { name: `${settled} of ${formatCount(files.length, 'file')}`, done, total, skipped },
    ])
  }

  function follow(unit: UploadUnit, sent: number): void {
    const [first, ...others] = unit.files
    const name = others.length === 0 ? (first?.path ?? '') : formatCount(unit.files.length, 'file')
    const size = unit.files.reduce((sum, { size }) => sum + size, 0)
    running.set(unit, { name, done: Math.min(sent, size), total: size })
    show()
  }

  async function storeLarge(
    unit: UploadUnit,
    { path, size }: PlannedFile,
    turn: Promise<void>,
  ): Promise<Media> {
    const source = await DiskFile.at(path)
    let isInProgress = false
    return await client.upload(source, {
      filename: basename(path),
      expiresAt: expiresAt ?? undefined,
      signal,
      piecesAbove: resumableAbove,
      resume: states,
      fingerprint: JSON.stringify([tokenHash, resolve(path), source.version]),
      beforeLastChunk: () => turn,
      onProgress({ sent }) {
        if (!isInProgress && sent > 0) {
          bars.clear()
          skipped += sent
          report(`${path}: resumed at ${Math.floor((sent / size) * 100)} %`)
        }
        isInProgress = true
        follow(unit, sent)
      },
    })
  }

  async function storeUnit(unit: UploadUnit, turn: Promise<void>): Promise<void> {
    const set = new Map<PlannedFile, Result>()
    const [first] = unit.files
    let error: unknown = null
    try {
      if (first && first.size > resumableAbove) set.set(first, await storeLarge(unit, first, turn))
      else {
        const ready = await small.prepare(unit, signal, set)
        await turn
        signal.throwIfAborted()
        follow(unit, 0)
        await small.store(ready, { signal, onProgress: ({ sent }) => follow(unit, sent) })
      }
    } catch (thrown) {
      error = thrown
    }
    if (error !== null && !signal.aborted && affectsAllFiles(error, explain(error))) {
      end = explain(error) ?? error
      stopped.abort()
    }
    for (const file of unit.files) results[file.index] = set.get(file) ?? (signal.aborted ? null : { error })
    await turn
  }

  async function print(untilGap: boolean): Promise<void> {
    while (printed < files.length) {
      const [file, result] = [files[printed], results[printed]]
      if (untilGap && !result) return
      printed += 1
      if (!file || !result || result === 'lost' || 'error' in result) continue
      bars.clear()
      // If the output is closed, the files are still uploaded.
      if (!output.closed.aborted) await printItem(output, format, result, file.path).catch(() => {})
    }
  }

  const queue = planUnits(files, journal.unanswered).values()
  let last = Promise.resolve()
  async function drain(): Promise<void> {
    for (const unit of queue) {
      if (signal.aborted) return
      const turn = last
      const done = storeUnit(unit, turn)
      last = done
      await done
      running.delete(unit)
      settled += unit.files.length
      settledBytes += unit.files.reduce((sum, { size }) => sum + size, 0)
      await print(true)
      show()
    }
  }
  try {
    await Promise.all(Array.from({ length: concurrency }, drain))
    await print(false)
  } finally {
    bars.clear()
  }
  return { ...outcomeOf(files, results, explain), end: interrupted.aborted ? interrupted.reason : end }
}

/** Names that differ only in the form of Unicode look equal. */
const isRenamed = (result: Exclude<Result, 'lost'>, path: string): boolean =>
  !('error' in result) && result.filename !== undefined && result.filename !== basename(path).normalize('NFC')

function outcomeOf(
  files: readonly PlannedFile[],
  results: readonly (Result | null)[],
  explain: ClientContext['explain'],
): Omit<Outcome, 'end'> {
  const stored: number[] = []
  const failed: LocalFault[] = []
  let [lost, renamed] = [0, 0]
  for (const { path, size, index } of files) {
    const result = results[index]
    if (!result) continue
    if (result === 'lost') lost += 1
    else if (isRenamed(result, path)) renamed += 1
    if (result === 'lost' || !('error' in result)) stored.push(size)
    else failed.push({ path, reason: explain(result.error)?.message ?? String(result.error) })
  }
  return { stored, lost, renamed, failed, untried: files.length - stored.length - failed.length }
}
