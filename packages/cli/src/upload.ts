import { createHash } from 'node:crypto'
import { basename, resolve } from 'node:path'
import type { Labels, Media } from '@mediabucket/client'
import { maxLabels } from '@mediabucket/client/rules'
import {
  affectsAllFiles,
  type ClientContext,
  clientCommand,
  isRefusal,
  readLabels,
} from './client-command.ts'
import { stateDirectory } from './client-settings.ts'
import { CommandError, type ExpiryOption, parse, readExpiry, UsageError } from './command.ts'
import { DiskFile, findFiles, type LocalFault, type LocalFile, readExclusions } from './local-files.ts'
import {
  type PlannedFile,
  planUnits,
  type Result,
  resumableAbove,
  SmallUploads,
  type UploadUnit,
} from './small-uploads.ts'
import {
  createProgressBars,
  formatCount,
  formatOptions,
  formatSize,
  type LineFormat,
  type Progress,
  printItem,
  readFormat,
} from './terminal.ts'
import {
  lockPaths,
  openJournal,
  type StateFiles,
  type StoredItem,
  stateFiles,
  type UploadJournal,
  type UploadStates,
  uploadStates,
} from './upload-state.ts'
import { isSourceUrl, requireSourceUrls, uploadUrls } from './url-uploads.ts'

interface Arguments {
  readonly paths: readonly string[]
  /** Whether the only path is `-`. */
  readonly isInput: boolean
  /** Whether the paths are URLs. */
  readonly isRemote: boolean
  /** Of standard input, or of the file at the only URL. */
  readonly filename: string | undefined
  readonly exclude: readonly string[]
  readonly isDryRun: boolean
  readonly format: LineFormat
  /** The option as it was given. */
  readonly expires: string | null
  readonly expiry: ExpiryOption | null
  /** Undefined for none. */
  readonly labels: Labels | undefined
}

export const upload = clientCommand<Arguments>({
  help: `Usage: mediabucket upload FILE|DIR … [--expires TIME] [--label KEY=VALUE …] [--exclude PATTERN] [--dry-run] [--json | -0]
       mediabucket upload - [--filename NAME] [--expires TIME] [--label KEY=VALUE …]
       mediabucket upload URL … [--filename NAME] [--expires TIME] [--label KEY=VALUE …] [--json | -0]

Uploads each file, and all files below each directory, including hidden files. Prints the URL, a tab and the path of each
file. Files are stored and printed in the order of the paths; names within a directory in natural order: 2.jpg before
10.jpg. Small files are sent together. A terminal shows progress bars.

To continue after a crash, a kill or Ctrl-C, or to upload files that failed, run the same command again: within 24 hours, no
file is stored twice.
A file above 16 MB is a resumable upload, and continues where it stopped until the service removes it (24 hours by
default); a file that has changed starts again. The state is stored in $XDG_STATE_HOME/mediabucket, by default
~/.local/state/mediabucket, without the token.

Links to files are followed; links to directories below a directory are not. Files of the operating system, such as
.DS_Store, Thumbs.db and ._*, are skipped below directories; pass their paths to upload them. Files that could not be
uploaded are listed at the end, and the exit code is not 0. If the service rejects the token or cannot be reached, the
remaining files are not tried.

With - instead of paths, standard input is uploaded as one file, in one request that is not repeated. With URLs that begin with http:// or https://, the
service itself requests the files, if its operator allows that.

Options:
  --expires TIME     When the items expire, and are deleted: a duration from now such as 12h or 7d, or a time such as
                     2030-01-31T08:00:00Z. Default: by the settings of the bucket.
  --label KEY=VALUE  A label of the items. Can be given up to ${maxLabels} times.
  --exclude PATTERN  Skip files and directories whose names match, such as '*.tmp'. A pattern with a slash matches the path
                     below a directory: 'drafts/*'. Can be given several times.
  --dry-run          Print the paths that would be uploaded, and send nothing.
  --filename NAME    The name of standard input, or of the file at the only URL. Default: none, or that of the URL.
  --json             Print one JSON object per line: id, url, path and size.
  -0, --null         End each line with a NUL character instead, and print paths unchanged, for xargs -0.`,

  read(args) {
    const { values, positionals } = parse('upload', {
      args: [...args],
      allowPositionals: true,
      options: {
        expires: { type: 'string' },
        label: { type: 'string', multiple: true, default: [] },
        exclude: { type: 'string', multiple: true, default: [] },
        'dry-run': { type: 'boolean', default: false },
        filename: { type: 'string' },
        ...formatOptions,
      },
    })
    if (positionals.length === 0)
      throw new UsageError('upload takes files and directories. See: mediabucket upload --help')
    const { expires = null, label, exclude, 'dry-run': isDryRun, filename } = values
    const isInput = positionals.includes('-')
    const isRemote = positionals.some(isSourceUrl)
    if (isInput && (positionals.length > 1 || isDryRun || exclude.length > 0))
      throw new UsageError(
        'upload - takes no other path, no --exclude and no --dry-run. A file of this name is ./-',
      )
    if (isRemote && (!positionals.every(isSourceUrl) || isDryRun || exclude.length > 0))
      throw new UsageError(
        'upload takes URLs or paths, not both, and no --exclude and no --dry-run with URLs. Write ./ before a path that begins like a URL.',
      )
    if (isRemote) requireSourceUrls(positionals)
    if (filename !== undefined && !isInput && !(isRemote && positionals.length === 1))
      throw new UsageError(
        '--filename is the name of standard input, or of one URL: upload - --filename NAME',
      )
    return {
      paths: positionals,
      isInput,
      isRemote,
      filename,
      expires,
      expiry: expires === null ? null : readExpiry('--expires', expires),
      labels: label.length === 0 ? undefined : newLabels(label),
      exclude,
      isDryRun,
      format: readFormat(values),
    }
  },

  async run(args, context) {
    if (args.isInput) return await uploadInput(args, context)
    if (args.isRemote) return await uploadUrls({ ...args, expiresAt: expiryFromNow(args.expiry) }, context)
    if (args.isDryRun) return await listPaths(args, context)
    const state = stateFiles(stateDirectory('uploads'), context.report)
    const release = await lockPaths(state, {
      owner: context.tokenHash,
      paths: args.paths,
      activity: 'upload of these files',
    })
    let isCompleted = false
    try {
      await uploadPaths(args, state, context, () => {
        isCompleted = true
      })
    } finally {
      await release(isCompleted)
    }
  },
})

/** Throws UsageError. */
function newLabels(texts: readonly string[]): Labels {
  const labels = Object.fromEntries(readLabels(texts))
  const { length } = Object.keys(labels)
  if (length > maxLabels) throw new UsageError(`--label takes up to ${maxLabels} labels, not ${length}`)
  return labels
}

async function uploadPaths(
  { paths, expires, expiry, labels, exclude, format }: Arguments,
  state: StateFiles,
  context: ClientContext,
  onCompleted: () => void,
): Promise<void> {
  const { report, tokenHash, output } = context
  const print = async (item: StoredItem, { path }: PlannedFile) => {
    // If the output is closed, the files are still uploaded.
    if (!output.closed.aborted) await printItem(output, format, item, path).catch(() => {})
  }
  const start = performance.now()
  const { files, faults, systemFiles, excluded } = await findFiles(paths, readExclusions(exclude))
  const states = uploadStates(state)
  const options = [
    ...(expires === null ? [] : [{ expires }]),
    ...(labels === undefined ? [] : [{ labels }]),
    ...(exclude.length === 0 ? [] : [{ exclude }]),
  ]
  const command = JSON.stringify([tokenHash, ...paths.map((path) => resolve(path)), ...options])
  const journal = await openJournal(state, command)
  // A run that continues another one sends the same time, so that resumable uploads go on.
  if (expiry !== null) await journal.begin()
  const expiresAt = expiry && expiryOf(expiry, journal.startedAt)
  const { stored, lost, renamed, failed, untried, end } = await sendFiles(
    planFiles(files),
    { states, journal, expiresAt, labels, print },
    context,
  )
  const seconds = ((performance.now() - start) / 1000).toFixed(1)
  const bytes = stored.reduce((sum, size) => sum + size, 0)
  const all = files.length + faults.length
  report(`Uploaded ${stored.length} of ${formatCount(all, 'file')}, ${formatSize(bytes)} in ${seconds} s.`)
  if (systemFiles.length > 0)
    report(
      `Skipped ${formatCount(systemFiles.length, 'file')} of the operating system: ${namesOf(systemFiles)}.`,
    )
  if (excluded > 0) report(`Excluded: ${formatCount(excluded, 'path')}.`)
  if (renamed > 0) report(`Names changed by the service: ${renamed}. mediabucket ls -l lists them.`)
  if (lost > 0)
    report(
      `${formatCount(lost, 'file')} of these ${lost === 1 ? 'was' : 'were'} stored by an earlier run that received no response. mediabucket ls lists the URLs.`,
    )
  const failures = [...faults, ...failed]
  if (failures.length > 0) report('Not uploaded:', ...failureLines(failures))
  if (untried > 0) report(`Not tried: ${formatCount(untried, 'file')}.`)
  if (end === null && failures.length === 0) {
    await journal.remove()
    await states.removeFinished()
    onCompleted()
  } else if (end === null && (journal.begun() || states.begun())) {
    report('Run the same command again to upload the rest. What was stored is not stored again.')
  } else if ((journal.begun() || states.begun()) && !isRefusal(context.explain(end))) {
    report('Run the same command again to continue.')
  }
  if (end !== null) throw end
  if (failures.length > 0)
    throw new CommandError(
      `${failures.length} of ${formatCount(all, 'file')} ${failures.length === 1 ? 'was' : 'were'} not uploaded`,
    )
}

/** Uploads standard input, whose size is unknown. */
async function uploadInput(
  { filename, expiry, labels, format }: Arguments,
  context: ClientContext,
): Promise<void> {
  const { client, output, report, interrupted } = context
  const start = performance.now()
  const bars = createProgressBars(process.stderr)
  try {
    const item = await client.upload(process.stdin, {
      filename,
      expiresAt: expiryFromNow(expiry),
      labels,
      signal: interrupted,
      onProgress: ({ sent }) => bars.show([{ name: 'standard input', done: sent, total: null, skipped: 0 }]),
    })
    bars.clear()
    await printItem(output, format, item, '-')
    const seconds = ((performance.now() - start) / 1000).toFixed(1)
    report(`Uploaded standard input, ${formatSize(item.size)} in ${seconds} s.`)
    if (filename !== undefined && item.filename !== filename.normalize('NFC'))
      report('Names changed by the service: 1. mediabucket ls -l lists them.')
  } finally {
    bars.clear()
    process.stdin.destroy()
  }
}

async function listPaths(
  { paths, exclude, format }: Arguments,
  { output, report }: ClientContext,
): Promise<void> {
  const { files, faults, systemFiles, excluded } = await findFiles(paths, readExclusions(exclude))
  if (format === 'json') await output.json(files.map(({ path, size }) => ({ path, size })))
  else if (format === 'null') await output.bytes(files.map(({ path }) => `${path}\0`).join(''))
  else await output.lines(files.map(({ path }) => path))
  const bytes = formatSize(files.reduce((sum, { size }) => sum + size, 0))
  report(`Would upload ${files.length} of ${formatCount(files.length + faults.length, 'file')}, ${bytes}.`)
  if (systemFiles.length > 0)
    report(
      `Would skip ${formatCount(systemFiles.length, 'file')} of the operating system: ${namesOf(systemFiles)}.`,
    )
  if (excluded > 0) report(`Excluded: ${formatCount(excluded, 'path')}.`)
  if (faults.length === 0) return
  report('Would not upload:', ...failureLines(faults))
  throw new CommandError(
    `${faults.length} of ${formatCount(files.length + faults.length, 'file')} would not be uploaded`,
  )
}

const expiryFromNow = (expiry: ExpiryOption | null): Date | undefined =>
  expiry === null ? undefined : expiryOf(expiry, Date.now())

/** If the time after the first run has passed, it is a time after this one. */
function expiryOf(expiry: ExpiryOption, startedAt: number): Date {
  if ('at' in expiry) return new Date(expiry.at)
  const at = startedAt + expiry.after
  return new Date(at > Date.now() ? at : Date.now() + expiry.after)
}

/** One line for each file; files with the same reason follow it. */
export function failureLines(failures: readonly LocalFault[]): string[] {
  const byReason = Map.groupBy(failures, ({ reason }) => reason)
  return [...byReason].flatMap(([reason, faults]) => {
    const paths = faults.map(({ path }) => path)
    return paths.length === 1
      ? [`  ${paths[0]}: ${reason}`]
      : [`  ${reason}`, ...paths.map((path) => `    ${path}`)]
  })
}

/** Up to three different names. */
function namesOf(paths: readonly string[]): string {
  const names = [...new Set(paths.map((path) => basename(path)))]
  return names.length > 3 ? `${names.slice(0, 3).join(', ')} and others` : names.join(', ')
}

function planFiles(files: readonly LocalFile[]): PlannedFile[] {
  const times = new Map<string, number>()
  return files.map((file, index) => {
    const absolute = resolve(file.path)
    const nth = times.get(absolute) ?? 0
    times.set(absolute, nth + 1)
    const identity = JSON.stringify([absolute, file.version, nth])
    return { ...file, index, fingerprint: createHash('sha256').update(identity).digest('hex').slice(0, 32) }
  })
}

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
 * sent concurrently, and each is committed after those before it are finished.
 */
export async function sendFiles(
  files: readonly PlannedFile[],
  {
    states,
    journal,
    expiresAt,
    labels,
    print: printStored,
  }: {
    readonly states: UploadStates
    readonly journal: UploadJournal
    readonly expiresAt: Date | null
    readonly labels?: Labels | undefined
    /** Called in the order of the files. */
    readonly print: (item: StoredItem, file: PlannedFile) => Promise<void>
  },
  context: ClientContext,
): Promise<Outcome> {
  const { client, tokenHash, interrupted, explain, report } = context
  const bars = createProgressBars(process.stderr)
  const stopped = new AbortController()
  const signal = AbortSignal.any([interrupted, stopped.signal])
  const small = new SmallUploads({ client, journal, expiresAt, labels })
  const running = new Map<UploadUnit, Progress>()
  const results = new Array<Result | null>(files.length).fill(null)
  const total = files.reduce((sum, { size }) => sum + size, 0)
  let finished = 0
  let finishedBytes = 0
  /** Bytes that an earlier run has sent. */
  let skipped = 0
  let printed = 0
  let end: unknown = null

  function show(): void {
    const inProgress = [...running.values()]
    const done = inProgress.reduce((sum, { done }) => sum + done, finishedBytes)
    bars.show([
      ...inProgress,
      { name: `${finished} of ${formatCount(files.length, 'file')}`, done, total, skipped },
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
    { path, name, size }: PlannedFile,
    turn: Promise<void>,
  ): Promise<Media> {
    const source = await DiskFile.at(path)
    let isInProgress = false
    return await client.upload(source, {
      filename: name,
      expiresAt: expiresAt ?? undefined,
      labels,
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
      await printStored(result, file)
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
      finished += unit.files.length
      finishedBytes += unit.files.reduce((sum, { size }) => sum + size, 0)
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
