import { basename, join, resolve } from 'node:path'
import type { Media, UploadOptions } from '@mediabucket/client'
import { parse } from '../arguments.ts'
import { CommandError, UsageError } from '../command.ts'
import { type ClientContext, clientCommand } from './client-command.ts'
import { stateDirectory } from './client-settings.ts'
import { DiskFile } from './disk-file.ts'
import { exitCodes } from './explain.ts'
import { findFiles, type LocalFault, type LocalFile } from './local-files.ts'
import { type Progress, progressBars } from './progress-bars.ts'
import { shownName, shownSize } from './shown.ts'
import { uploadOnce } from './upload-once.ts'
import { type UploadStates, uploadStates } from './upload-states.ts'

/** Uploads under way at a time. */
const atOnce = 6

/** Larger files go in pieces. Bytes. */
const piecesAbove = 16 * 1024 * 1024

export const upload = clientCommand({
  summary: 'Upload files and directories to the bucket of a service.',
  help: `Usage: mediabucket upload FILE|DIR …

Uploads every file, and every file below a directory, hidden ones too, ${atOnce} at a time. Prints the URL of each, a
tab, and its path, in the order of the paths, names within a directory sorted. On a terminal, bars show how far it is.

After a crash, a kill or Ctrl-C run the same command again: within 24 hours, what is stored already is not stored twice.
A file above 16 MiB goes in pieces and goes on where it stopped, for as long as the service keeps what it has of it (24
hours, unless it is set otherwise); a file that has changed begins anew. What that takes is kept in
$XDG_STATE_HOME/mediabucket, by default ~/.local/state/mediabucket, without the token.

Links to files are followed, links to directories below a directory are not. What could not be uploaded is listed at
the end, and the exit code is not 0. Where the service does not take the token, or cannot be reached, the rest is not
tried.`,

  read(args) {
    const { positionals } = parse('upload', { args: [...args], allowPositionals: true, options: {} })
    if (positionals.length === 0) throw new UsageError('upload takes files and directories; see its --help')
    return positionals
  },

  async run(paths, context) {
    const begun = performance.now()
    const { files, faults } = await findFiles(paths)
    const states = uploadStates(() => join(stateDirectory(), 'uploads'), context.tell)
    const once = uploadOnce({
      client: context.client,
      states,
      command: JSON.stringify([context.holder, ...paths.map((path) => resolve(path))]),
    })
    const { stored, failed, untried, end } = await sendAll(files, { states, once }, context)
    const seconds = ((performance.now() - begun) / 1000).toFixed(1)
    const bytes = stored.reduce((sum, { size }) => sum + size, 0)
    const all = files.length + faults.length
    context.tell(`Uploaded ${stored.length} of ${all} files, ${shownSize(bytes)} in ${seconds} s.`)
    const failures = [...faults, ...failed]
    if (failures.length > 0)
      context.tell(
        ['Not uploaded:', ...failures.map(({ path, reason }) => `  ${shownName(path)}: ${reason}`)].join(
          '\n',
        ),
      )
    if (untried > 0) context.tell(`Not tried: ${untried} files.`)
    if (end === null) {
      await once.end()
      await states.settle()
    } else if (states.begun() > 0 && !isRefusal(context.explain(end))) {
      context.tell('Run the same command again: it goes on where this one stopped.')
    }
    if (end !== null) throw end
    if (failures.length > 0) throw new CommandError(`${failures.length} of ${all} were not uploaded`)
  },
})

interface Outcome {
  readonly stored: readonly Media[]
  readonly failed: readonly LocalFault[]
  readonly untried: number
  /** What ended it before every file was tried; null when nothing did. */
  readonly end: unknown
}

/** Sends the files in their order, some at a time, and prints each as soon as those before it are through. */
async function sendAll(
  files: readonly LocalFile[],
  { states, once }: { readonly states: UploadStates; readonly once: ReturnType<typeof uploadOnce> },
  context: ClientContext,
): Promise<Outcome> {
  const { client, holder, output, interrupted, explain, tell } = context
  const bars = progressBars(process.stderr)
  const stopped = new AbortController()
  const signal = AbortSignal.any([interrupted, stopped.signal])
  const running = new Map<LocalFile, Progress>()
  const results = new Array<Media | LocalFault | null>(files.length).fill(null)
  const total = files.reduce((sum, { size }) => sum + size, 0)
  let settled = 0
  let settledBytes = 0
  let printed = 0
  let end: unknown = null

  function show(): void {
    const under = [...running.values()]
    const done = under.reduce((sum, { done }) => sum + done, settledBytes)
    bars.show([...under, { name: `${settled} of ${files.length} files`, done, total }])
  }

  async function send(file: LocalFile): Promise<Media | LocalFault | null> {
    const { path, size } = file
    try {
      const source = await DiskFile.at(path)
      let isUnderWay = false
      const fingerprint = JSON.stringify([holder, resolve(path), source.version])
      const options: UploadOptions = {
        filename: basename(path),
        signal,
        piecesAbove,
        onProgress({ sent }) {
          if (!isUnderWay && sent > 0) {
            bars.clear()
            tell(`${shownName(path)}: resumed at ${Math.floor((sent / size) * 100)} %`)
          }
          isUnderWay = true
          running.set(file, { name: path, done: sent, total: size })
          show()
        },
      }
      return await (source.size > piecesAbove
        ? client.upload(source, { ...options, resume: states, fingerprint })
        : once.upload(source, fingerprint, options))
    } catch (error) {
      if (signal.aborted) return null
      const told = explain(error)
      if (isForAll(error, told)) {
        end = told ?? error
        stopped.abort()
        return null
      }
      const reason = told?.message ?? String(error)
      bars.clear()
      tell(`mediabucket: ${shownName(path)}: ${reason}`)
      return { path, reason }
    }
  }

  async function print(untilGap: boolean): Promise<void> {
    while (printed < files.length) {
      const [file, result] = [files[printed], results[printed]]
      if (untilGap && !result) return
      printed += 1
      if (!file || !result || 'reason' in result) continue
      bars.clear()
      // Whoever does not read what is printed may still want the files stored.
      if (!output.closed.aborted)
        await output.write(`${result.url}\t${shownName(file.path)}\n`).catch(() => {})
    }
  }

  const waiting = files.entries()
  async function drain(): Promise<void> {
    for (const [index, file] of waiting) {
      if (signal.aborted) return
      running.set(file, { name: file.path, done: 0, total: file.size })
      results[index] = await send(file)
      running.delete(file)
      settled += 1
      settledBytes += file.size
      await print(true)
      show()
    }
  }
  try {
    await Promise.all(Array.from({ length: Math.min(atOnce, files.length) }, drain))
    await print(false)
  } finally {
    bars.clear()
  }
  const stored = results.filter((result) => result !== null).filter((result) => 'url' in result)
  const failed = results.filter((result) => result !== null).filter((result) => 'reason' in result)
  return {
    stored,
    failed,
    untried: files.length - stored.length - failed.length,
    end: interrupted.aborted ? interrupted.reason : end,
  }
}

/** Whether every other file would fail of the same: of the token, or for want of a service. */
function isForAll(error: unknown, told: Error | null): boolean {
  if (isRefusal(told)) return true
  return (
    error instanceof Error &&
    ['ConnectionError', 'TimeoutError', 'RedirectError', 'ShapeError'].includes(error.name)
  )
}

const isRefusal = (told: Error | null): boolean =>
  told instanceof CommandError && told.exitCode === exitCodes.refused
