import { createHash } from 'node:crypto'
import { basename, join, resolve } from 'node:path'
import { parse } from '../arguments.ts'
import { CommandError, UsageError } from '../command.ts'
import { formatCount } from '../table.ts'
import { type ClientContext, clientCommand } from './client-command.ts'
import { stateDirectory } from './client-settings.ts'
import { isRefusal } from './explain-client-error.ts'
import { findFiles, type LocalFault, type LocalFile, readExclusions } from './local-files.ts'
import { formatOptions, type LineFormat, printItem, readFormat } from './output.ts'
import { createProgressBars } from './progress-bars.ts'
import { sendFiles } from './send-files.ts'
import type { PlannedFile } from './small-uploads.ts'
import { formatSize } from './terminal-text.ts'
import { type ExpiryOption, readExpiry } from './time-options.ts'
import { lockPaths, openJournal, type StateFiles, stateFiles, uploadStates } from './upload-state.ts'

interface Arguments {
  readonly paths: readonly string[]
  /** Whether the only path is `-`. */
  readonly isInput: boolean
  /** Of standard input. */
  readonly filename: string | undefined
  readonly exclude: readonly string[]
  readonly isDryRun: boolean
  readonly format: LineFormat
  /** The option as it was given. */
  readonly expires: string | null
  readonly expiry: ExpiryOption | null
}

export const upload = clientCommand<Arguments>({
  help: `Usage: mediabucket upload FILE|DIR … [--expires TIME] [--exclude PATTERN] [--dry-run] [--json | -0]
       mediabucket upload - [--filename NAME] [--expires TIME]

Uploads each file, and all files below each directory, including hidden files. Prints the URL, a tab and the path of each
file. Files are stored and printed in the order of the paths; names within a directory in natural order: 2.jpg before
10.jpg. Small files are sent together. A terminal shows progress bars.

To continue after a crash, a kill or Ctrl-C, run the same command again: within 24 hours, no file is stored twice.
A file above 16 MB is a resumable upload, and continues where it stopped until the service removes it (24 hours by
default); a file that has changed starts again. The state is stored in $XDG_STATE_HOME/mediabucket, by default
~/.local/state/mediabucket, without the token.

Links to files are followed; links to directories below a directory are not. Files of the operating system, such as
.DS_Store, Thumbs.db and ._*, are skipped below directories; pass their paths to upload them. Files that could not be
uploaded are listed at the end, and the exit code is not 0. If the service rejects the token or cannot be reached, the
remaining files are not tried.

With - instead of paths, standard input is uploaded as one file, in one request that is not repeated.

Options:
  --expires TIME     When the items expire, and are deleted: a duration from now such as 12h or 7d, or a time such as
                     2030-01-31T08:00:00Z. Default: by the settings of the bucket.
  --exclude PATTERN  Skip files and directories whose names match, such as '*.tmp'. A pattern with a slash matches the path
                     below a directory: 'drafts/*'. Can be given several times.
  --dry-run          Print the paths that would be uploaded, and send nothing.
  --filename NAME    The name of standard input. Default: none.
  --json             Print one JSON object per line: id, url, path and size.
  -0, --null         End each line with a NUL character instead, and print paths unchanged, for xargs -0.`,

  read(args) {
    const { values, positionals } = parse('upload', {
      args: [...args],
      allowPositionals: true,
      options: {
        expires: { type: 'string' },
        exclude: { type: 'string', multiple: true, default: [] },
        'dry-run': { type: 'boolean', default: false },
        filename: { type: 'string' },
        ...formatOptions,
      },
    })
    if (positionals.length === 0)
      throw new UsageError('upload takes files and directories. See: mediabucket upload --help')
    const { expires = null, exclude, 'dry-run': isDryRun, filename } = values
    const isInput = positionals.includes('-')
    if (isInput && (positionals.length > 1 || isDryRun || exclude.length > 0))
      throw new UsageError(
        'upload - takes no other path, no --exclude and no --dry-run. A file of this name is ./-',
      )
    if (filename !== undefined && !isInput)
      throw new UsageError('--filename is the name of standard input: upload - --filename NAME')
    return {
      paths: positionals,
      isInput,
      filename,
      expires,
      expiry: expires === null ? null : readExpiry('--expires', expires),
      exclude,
      isDryRun,
      format: readFormat(values),
    }
  },

  async run(args, context) {
    if (args.isInput) return await uploadInput(args, context)
    if (args.isDryRun) return await listPaths(args, context)
    const state = stateFiles(join(stateDirectory(), 'uploads'), context.report)
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

async function uploadPaths(
  { paths, expires, expiry, exclude, format }: Arguments,
  state: StateFiles,
  context: ClientContext,
  onCompleted: () => void,
): Promise<void> {
  const { report, tokenHash } = context
  const start = performance.now()
  const { files, faults, systemFiles, excluded } = await findFiles(paths, readExclusions(exclude))
  const states = uploadStates(state)
  const options = [...(expires === null ? [] : [{ expires }]), ...(exclude.length === 0 ? [] : [{ exclude }])]
  const command = JSON.stringify([tokenHash, ...paths.map((path) => resolve(path)), ...options])
  const journal = await openJournal(state, command)
  // A run that continues another one sends the same time, so that resumable uploads go on.
  if (expiry !== null) await journal.begin()
  const expiresAt = expiry && expiryOf(expiry, journal.startedAt)
  const { stored, lost, renamed, failed, untried, end } = await sendFiles(
    planFiles(files),
    { states, journal, expiresAt, format },
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
  if (end === null) {
    await journal.remove()
    await states.settle()
    onCompleted()
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
async function uploadInput({ filename, expiry, format }: Arguments, context: ClientContext): Promise<void> {
  const { client, output, report, interrupted } = context
  const start = performance.now()
  const bars = createProgressBars(process.stderr)
  try {
    const item = await client.upload(process.stdin, {
      filename,
      expiresAt: expiry === null ? undefined : expiryOf(expiry, Date.now()),
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

/** If the time after the first run has passed, it is a time after this one. */
function expiryOf(expiry: ExpiryOption, startedAt: number): Date {
  if ('at' in expiry) return new Date(expiry.at)
  const at = startedAt + expiry.after
  return new Date(at > Date.now() ? at : Date.now() + expiry.after)
}

/** One line for each file; files with the same reason follow it. */
function failureLines(failures: readonly LocalFault[]): string[] {
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
