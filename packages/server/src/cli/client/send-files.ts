import { basename, resolve } from 'node:path'
import type { Media } from '@mediabucket/client'
import { CommandError } from '../command.ts'
import { formatCount } from '../table.ts'
import type { ClientContext } from './client-command.ts'
import { DiskFile } from './disk-file.ts'
import { exitCodes } from './explain-client-error.ts'
import type { LocalFault } from './local-files.ts'
import { type Progress, progressBars } from './progress-bars.ts'
import { type Result, smallUploads } from './small-uploads.ts'
import { printableText } from './terminal-text.ts'
import type { UploadJournal } from './upload-journal.ts'
import type { UploadStates } from './upload-states.ts'
import { type PlannedFile, planUnits, resumableAbove, type UploadUnit } from './upload-units.ts'

/** Units under way at a time. */
const atOnce = 6

export interface Outcome {
  /** Bytes of each stored file. */
  readonly stored: readonly number[]
  /** How many of them an earlier run stored, with an answer that is lost. */
  readonly lost: number
  readonly failed: readonly LocalFault[]
  readonly untried: number
  /** What ended it before every file was tried; null when nothing did. */
  readonly end: unknown
}

/**
 * Sends the files and prints each in their order, which is that of the listing too: units are read and resumable uploads
 * sent side by side, and each commits when those before it are settled.
 */
export async function sendFiles(
  files: readonly PlannedFile[],
  { states, journal }: { readonly states: UploadStates; readonly journal: UploadJournal },
  context: ClientContext,
): Promise<Outcome> {
  const { client, holder, output, interrupted, explain, report } = context
  const bars = progressBars(process.stderr)
  const stopped = new AbortController()
  const signal = AbortSignal.any([interrupted, stopped.signal])
  const small = smallUploads({ client, journal })
  const running = new Map<UploadUnit, Progress>()
  const results = new Array<Result | null>(files.length).fill(null)
  const total = files.reduce((sum, { size }) => sum + size, 0)
  let settled = 0
  let settledBytes = 0
  let printed = 0
  let end: unknown = null

  function show(): void {
    const under = [...running.values()]
    const done = under.reduce((sum, { done }) => sum + done, settledBytes)
    bars.show([...under, { name: `${settled} of ${formatCount(files.length, 'file')}`, done, total }])
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
    let isUnderWay = false
    return await client.upload(source, {
      filename: basename(path),
      signal,
      piecesAbove: resumableAbove,
      resume: states,
      fingerprint: JSON.stringify([holder, resolve(path), source.version]),
      beforeLastPiece: () => turn,
      onProgress({ sent }) {
        if (!isUnderWay && sent > 0) {
          bars.clear()
          report(`${printableText(path)}: resumed at ${Math.floor((sent / size) * 100)} %`)
        }
        isUnderWay = true
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
    if (error !== null && !signal.aborted && isForAll(error, explain(error))) {
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
      // A caller that does not read the output may still want the files stored.
      if (!output.closed.aborted)
        await output.write(`${result.url}\t${printableText(file.path)}\n`).catch(() => {})
    }
  }

  const waiting = planUnits(files, journal.unanswered).values()
  let last = Promise.resolve()
  async function drain(): Promise<void> {
    for (const unit of waiting) {
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
    await Promise.all(Array.from({ length: atOnce }, drain))
    await print(false)
  } finally {
    bars.clear()
  }
  return { ...outcomeOf(files, results, explain), end: interrupted.aborted ? interrupted.reason : end }
}

function outcomeOf(
  files: readonly PlannedFile[],
  results: readonly (Result | null)[],
  explain: ClientContext['explain'],
): Omit<Outcome, 'end'> {
  const stored: number[] = []
  const failed: LocalFault[] = []
  let lost = 0
  for (const { path, size, index } of files) {
    const result = results[index]
    if (!result) continue
    if (result === 'lost') lost += 1
    if (result === 'lost' || !('error' in result)) stored.push(size)
    else failed.push({ path, reason: explain(result.error)?.message ?? String(result.error) })
  }
  return { stored, lost, failed, untried: files.length - stored.length - failed.length }
}

/** Whether every other file would fail of the same: of the token, or for want of a service. */
function isForAll(error: unknown, told: Error | null): boolean {
  if (isRefusal(told)) return true
  return (
    error instanceof Error &&
    ['ConnectionError', 'TimeoutError', 'RedirectError', 'ShapeError'].includes(error.name)
  )
}

export const isRefusal = (told: Error | null): boolean =>
  told instanceof CommandError && told.exitCode === exitCodes.refused
