import { createHash } from 'node:crypto'
import { basename, join, resolve } from 'node:path'
import { parse } from '../arguments.ts'
import { CommandError, UsageError } from '../command.ts'
import { formatCount } from '../table.ts'
import { type ClientContext, clientCommand } from './client-command.ts'
import { stateDirectory } from './client-settings.ts'
import { findFiles, type LocalFault, type LocalFile } from './local-files.ts'
import { isRefusal, sendFiles } from './send-files.ts'
import { formatSize } from './terminal-text.ts'
import { type ExpiryOption, readExpiry } from './time-options.ts'
import { lockUploads, openJournal, type StateFiles, stateFiles, uploadStates } from './upload-state.ts'
import type { PlannedFile } from './upload-units.ts'

interface Arguments {
  readonly paths: readonly string[]
  /** The option as it was given. */
  readonly expires: string | null
  readonly expiry: ExpiryOption | null
}

export const upload = clientCommand<Arguments>({
  help: `Usage: mediabucket upload FILE|DIR … [--expires TIME]

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

Options:
  --expires TIME  When the items expire, and are deleted: a duration from now such as 12h or 7d, or a time such as
                  2030-01-31T08:00:00Z. Default: by the settings of the bucket.`,

  read(args) {
    const { values, positionals } = parse('upload', {
      args: [...args],
      allowPositionals: true,
      options: { expires: { type: 'string' } },
    })
    if (positionals.length === 0)
      throw new UsageError('upload takes files and directories. See: mediabucket upload --help')
    const { expires = null } = values
    return { paths: positionals, expires, expiry: expires === null ? null : readExpiry('--expires', expires) }
  },

  async run(args, context) {
    const state = stateFiles(join(stateDirectory(), 'uploads'), context.report)
    const release = await lockUploads(state, { tokenHash: context.tokenHash, paths: args.paths })
    try {
      await uploadPaths(args, state, context)
    } finally {
      await release()
    }
  },
})

async function uploadPaths(
  { paths, expires, expiry }: Arguments,
  state: StateFiles,
  context: ClientContext,
): Promise<void> {
  const { report, tokenHash } = context
  const start = performance.now()
  const { files, faults, systemFiles } = await findFiles(paths)
  const states = uploadStates(state)
  const options = expires === null ? [] : [{ expires }]
  const command = JSON.stringify([tokenHash, ...paths.map((path) => resolve(path)), ...options])
  const journal = await openJournal(state, command)
  // A run that continues another one sends the same time, so that resumable uploads go on.
  if (expiry !== null) await journal.begin()
  const expiresAt = expiry && expiryOf(expiry, journal.startedAt)
  const { stored, lost, failed, untried, end } = await sendFiles(
    planFiles(files),
    { states, journal, expiresAt },
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
  } else if ((journal.begun() || states.begun()) && !isRefusal(context.explain(end))) {
    report('Run the same command again to continue.')
  }
  if (end !== null) throw end
  if (failures.length > 0)
    throw new CommandError(
      `${failures.length} of ${formatCount(all, 'file')} ${failures.length === 1 ? 'was' : 'were'} not uploaded`,
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
