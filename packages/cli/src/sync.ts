import { watch } from 'node:fs'
import { mkdir, realpath, stat } from 'node:fs/promises'
import { flushCompileCache } from 'node:module'
import { basename, resolve } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { setFlagsFromString } from 'node:v8'
import { cleanPath } from '@mediabucket/client/rules'
import { type ClientContext, clientCommand, isRefusal } from './client-command.ts'
import { stateDirectory } from './client-settings.ts'
import { CommandError, exitCodes, parse, UsageError } from './command.ts'
import { readExclusions } from './local-files.ts'
import { identityOf, stayingAt } from './local-tree.ts'
import { syncDown } from './sync-down.ts'
import { fewDeletes, type SyncArguments, type SyncOutcome } from './sync-pass.ts'
import { openSyncRecords, type SyncRecords } from './sync-records.ts'
import { syncUp, type UploadState } from './sync-up.ts'
import { formatCount, formatSize } from './terminal.ts'
import { failureLines } from './upload.ts'
import { lockPaths, openJournal, stateFiles, uploadStates } from './upload-state.ts'

type LocalSide = Pick<UploadState, 'requireSame' | 'onDirectory'>

interface Arguments extends SyncArguments {
  readonly isDown: boolean
  readonly watches: boolean
}

export const sync = clientCommand<Arguments>({
  help: `Usage: mediabucket sync DIR [--folder PATH] [--delete | --delete=all] [--max-delete N] [--exclude PATTERN] [--dry-run | --watch] [--json]
       mediabucket sync --down DIR [the same options]

Makes the items of the bucket that have a path equal to the files of DIR, or with --down the files equal to the items. A file
and an item are equal if they have the same path and the same SHA-256. Only what differs is transferred, and a second run
transfers nothing. Items without a path are left alone, and counted. A key that a program has stored through S3 is a path.

Up, a file that has changed becomes a new item, and the item that it replaces is deleted (to the trash, if the bucket has
one), which needs a token with media:delete. If that item has a key, the key passes to the new one. Down, a file that differs is
replaced when its download is complete. If several items have the same path, the one that has it as its key counts, otherwise
the newest.

To continue after a crash, a kill or Ctrl-C, run the same command again. Which files are which items is stored in
$XDG_STATE_HOME/mediabucket, so that unchanged files are not read again; without it, all files are read and compared, and
--delete deletes nothing.

Prints one line for each change: upload, download, replace or delete, a tab, and the path. Empty directories, links to
directories and files of the operating system are left out.

Options:
  --down             Download into DIR, which is created if it does not exist.
  --folder PATH      Only items whose paths are below PATH, which DIR stands for. Default: all items that have a path. With
                     --down, a folder that the bucket does not have is an error.
  --delete           Delete what the other side does not have, if an earlier run knew it on both sides and, with --down, the
                     file has not changed since. If that is more than half of more than ${fewDeletes} paths, nothing is deleted and the
                     exit code is ${exitCodes.deletesRefused}. Nothing is deleted either if a directory cannot be read.
  --delete=all       Delete all that the other side does not have, also what no run knew, and however much it is.
  --max-delete N     With --delete or --delete=all, delete up to N paths; if it would be more, delete nothing.
  --exclude PATTERN  Leave out what matches, such as '*.tmp', on both sides. A pattern with a slash matches the path in the
                     bucket: 'drafts/*'. Can be given several times.
  --dry-run          Print what would be changed, and change nothing.
  --watch            Go on when files or, with --down, items change, until Ctrl-C.
  --json             Print one JSON object per line: action and path of each change and of each failure ("fail", with its reason),
                     then the totals of the run. The action "error" has the reason why a run ended early.

Exit codes: ${exitCodes.partial} if some files could not be transferred, ${exitCodes.vanished} if only files failed that were removed in the meantime,
${exitCodes.deletesRefused} if everything was transferred and --delete refused to delete so much.`,

  read(args) {
    const { values, positionals } = parse('sync', {
      args: args.map(readDeleteOption),
      allowPositionals: true,
      options: {
        down: { type: 'boolean', default: false },
        folder: { type: 'string' },
        delete: { type: 'boolean', default: false },
        'delete-all': { type: 'boolean', default: false },
        'max-delete': { type: 'string' },
        exclude: { type: 'string', multiple: true, default: [] },
        'dry-run': { type: 'boolean', default: false },
        watch: { type: 'boolean', default: false },
        json: { type: 'boolean', default: false },
      },
    })
    const [directory, ...others] = positionals
    if (directory === undefined || directory === '' || others.length > 0)
      throw new UsageError('sync takes one directory. See: mediabucket sync --help')
    const { down, folder, exclude, watch: watches, 'dry-run': isDryRun, json: isJson } = values
    if (watches && isDryRun) throw new UsageError('sync takes --watch or --dry-run, not both')
    const deletes = values['delete-all'] ? 'all' : values.delete ? 'known' : 'none'
    const path = folder === undefined ? '' : cleanPath(`./${folder.replace(/\/+$/, '')}`)
    if (path === null) throw new UsageError(`--folder takes a path such as album/summer, not "${folder}"`)
    const matches = readExclusions(exclude)
    // As for files below a directory, everything in a directory that matches is left out.
    const isExcluded = (name: string) =>
      name.split('/').some((_, index, parts) => matches(parts.slice(0, index + 1).join('/')))
    return {
      ...{ directory, folder: path === '' ? '' : `${path}/`, isDown: down },
      ...{ isDryRun, deletes, maxDeletes: readMaxDeletes(values['max-delete'], deletes) },
      ...{ isExcluded, watches, isJson },
    }
  },

  async run(args, context) {
    const outcome = await synchronize(args, context).catch(async (error: unknown) => {
      if (args.isJson) await printError(error, context)
      throw error
    })
    if (outcome !== null) finish(args, outcome)
  },
})

/** V8 collects the old generation when it has doubled since the last time; without the flag, when it is several times as large. */
function collectSooner(): void {
  // Compiled code is stored for each set of flags. Before the change, Node.js loads its own code of requests, and stores that of the program.
  void globalThis.Response
  flushCompileCache()
  setFlagsFromString('--heap-growing-percent=100')
}

/** Null with `watches`. Throws the error that ended the run early. */
async function synchronize(args: Arguments, context: ClientContext): Promise<SyncOutcome | null> {
  collectSooner()
  const { directory, folder, isDown, isDryRun } = args
  const found = await stat(directory).catch(() => null)
  if (found === null && !isDown) throw new CommandError(`${directory} does not exist`)
  if (found !== null && !found.isDirectory()) throw new CommandError(`${directory} is not a directory`)
  const state = stateFiles(stateDirectory('sync'), context.report)
  const release = await lockPaths(state, {
    ...{ owner: 'sync', paths: [directory] },
    activity: 'sync of this directory',
  })
  try {
    const real = await realpath(directory).catch(() => resolve(directory))
    const records = await openSyncRecords(state, JSON.stringify(['sync', context.tokenHash, real, folder]))
    if (isDown) await requireFolder(args, records, context)
    if (isDown && !isDryRun) await mkdir(directory, { recursive: true })
    const requireSame = isDown ? async () => {} : await stayingAt(directory)
    if (args.watches) {
      await watchChanges(args, records, requireSame, context)
      return null
    }
    const outcome = await runPass(args, records, { requireSame }, context)
    if (outcome.end !== null) {
      context.report('Run the same command again to continue.')
      throw outcome.end
    }
    return outcome
  } finally {
    await release(false)
  }
}

/** `--delete=all` as an option of its own, which parseArgs has no other form for. */
function readDeleteOption(arg: string): string {
  if (arg === '--delete=all') return '--delete-all'
  if (!arg.startsWith('--delete=')) return arg
  throw new UsageError(`sync takes --delete or --delete=all, not ${JSON.stringify(arg)}`)
}

function readMaxDeletes(text: string | undefined, deletes: Arguments['deletes']): number | null {
  if (text === undefined) return null
  if (deletes === 'none') throw new UsageError('--max-delete needs --delete or --delete=all')
  if (/^\d{1,15}$/.test(text)) return Number(text)
  throw new UsageError(`--max-delete takes a whole number, not "${text}"`)
}

/** A mistyped folder must not be taken for one whose items were deleted. */
async function requireFolder(
  { folder }: Arguments,
  records: SyncRecords,
  { client, interrupted }: ClientContext,
): Promise<void> {
  if (folder === '' || records.count() > 0) return
  for await (const _ of client.items({ path: folder, batchSize: 1, signal: interrupted })) return
  throw new CommandError(
    `the bucket has no folder ${JSON.stringify(folder.slice(0, -1))}. See: mediabucket ls -R`,
    exitCodes.notFound,
  )
}

async function runPass(
  args: Arguments,
  records: SyncRecords,
  local: LocalSide,
  context: ClientContext,
  lastRefusal: string | null = null,
): Promise<SyncOutcome> {
  const start = performance.now()
  const outcome = args.isDown
    ? await syncDown(args, records, context)
    : await passUp(args, records, local, context)
  if (!args.isDryRun) await (outcome.end === null ? records.compact() : records.flush())
  await summarize(args, outcome, { duration: performance.now() - start, lastRefusal }, context)
  return outcome
}

/** Reports the totals of a run. `duration` is in milliseconds, `lastRefusal` that of the run before. */
async function summarize(
  args: Arguments,
  outcome: SyncOutcome,
  { duration, lastRefusal }: { readonly duration: number; readonly lastRefusal: string | null },
  context: ClientContext,
): Promise<void> {
  const { examined, unchanged, sent, replaced, deleted, failed, untried } = outcome
  const { leftAlone, withoutPath, refusal, end } = outcome
  const { report } = context
  const isQuiet = sent.files + replaced + deleted + failed.length === 0 && refusal === lastRefusal
  if (args.watches && isQuiet) return
  if (args.isJson) await printTotals(args, outcome, context)
  const verb = args.isDown ? 'download' : 'upload'
  const amount = `${formatCount(sent.files, 'file')}, ${formatSize(sent.bytes)}`
  report(
    args.isDryRun
      ? `Would ${verb} ${amount}, of ${formatCount(examined, 'file')}.`
      : `${verb === 'upload' ? 'Uploaded' : 'Downloaded'} ${amount}, of ${formatCount(examined, 'file')}, in ${(duration / 1000).toFixed(1)} s.`,
    `Unchanged: ${unchanged}. Replaced: ${replaced}. Deleted: ${deleted}.`,
  )
  if (failed.length > 0) report('Not transferred:', ...failureLines(failed))
  if (untried > 0) report(`Not tried: ${formatCount(untried, 'file')}.`)
  if (end !== null) report('The run ended before both sides were compared completely.')
  if (withoutPath !== null && withoutPath > 0)
    report(`Left alone: ${formatCount(withoutPath, 'item')} of the bucket without a path.`)
  if (leftAlone > 0)
    report(
      `Left alone: ${formatCount(leftAlone, 'path')} that no earlier run knew, or that changed since. --delete=all deletes them.`,
    )
  if (refusal !== null) report(refusal)
}

/** The failures and the totals, one JSON object a line. */
async function printTotals(
  { isDown, isDryRun }: Arguments,
  { sent, failed, leftAlone, withoutPath, refusal, end, ...counts }: SyncOutcome,
  { output }: ClientContext,
): Promise<void> {
  const { examined, unchanged, replaced, deleted, vanished, untried } = counts
  const totals = {
    ...{ direction: isDown ? 'down' : 'up', dry_run: isDryRun, complete: end === null },
    ...{ examined, unchanged, transferred: sent.files, bytes: sent.bytes, replaced, deleted },
    ...{ failed: failed.length, vanished, untried, left_alone: leftAlone, without_path: withoutPath },
    deletes_refused: refusal !== null,
  }
  const failures = failed.map(({ key, reason }) => ({ action: 'fail', path: key || './', reason }))
  if (!output.closed.aborted) await output.json([...failures, { totals }]).catch(() => {})
}

/** The error that ends the command, as the last JSON object. */
async function printError(error: unknown, { output, interrupted, explain }: ClientContext): Promise<void> {
  if (interrupted.aborted || output.closed.aborted) return
  await output.json([{ action: 'error', reason: explain(error)?.message ?? String(error) }]).catch(() => {})
}

/** Uploads with a journal, so that a run after a kill stores no file twice. */
async function passUp(
  args: Arguments,
  records: SyncRecords,
  local: LocalSide,
  context: ClientContext,
): Promise<SyncOutcome> {
  const { directory, folder } = args
  const files = stateFiles(stateDirectory('sync'), context.report)
  const key = JSON.stringify(['sync-uploads', context.tokenHash, resolve(directory), folder])
  const states = uploadStates(files)
  const outcome = await syncUp(
    args,
    { ...local, records, openJournal: () => openJournal(files, key), states },
    context,
  )
  if (outcome.end === null && !args.isDryRun) await states.removeFinished()
  return outcome
}

/** Throws CommandError if something was not transferred or deleted. */
function finish({ isDown }: Arguments, { failed, vanished, refusal }: SyncOutcome): void {
  if (failed.length === 0 && refusal !== null)
    throw new CommandError('some paths were not deleted', exitCodes.deletesRefused)
  if (failed.length === 0) return
  const isOnlyVanished = vanished === failed.length
  throw new CommandError(
    `${formatCount(failed.length, 'file')} ${failed.length === 1 ? 'was' : 'were'} not ${isDown ? 'downloaded' : 'uploaded'}`,
    isOnlyVanished ? exitCodes.vanished : exitCodes.partial,
  )
}

/** Changes that follow each other within this time are transferred together. Milliseconds. */
const quietTime = 300
/** Both sides are compared again after this time, in case a notification was lost. Milliseconds. */
const longestWait = 600_000
/** The same where the system gives no notifications. */
const pollTime = 60_000
/** Before a repetition after a lost connection. Milliseconds. */
const retryDelay = 5_000

/** Repeats until it is interrupted. */
async function watchChanges(
  args: Arguments,
  records: SyncRecords,
  requireSame: LocalSide['requireSame'],
  context: ClientContext,
): Promise<void> {
  const { interrupted, report, explain } = context
  const bell = createBell()
  let lastRefusal: string | null = null
  // Before the first comparison, so that no change is missed.
  const watching = args.isDown ? await followFeed(bell.ring, context) : watchFiles(bell.ring, report)
  try {
    for (;;) {
      bell.reset()
      watching.begin?.()
      try {
        const { end, refusal } = await runPass(
          args,
          records,
          { requireSame, onDirectory: watching.onDirectory },
          context,
          lastRefusal,
        )
        if (end !== null) throw end
        lastRefusal = refusal
        watching.end?.()
        await bell.rung(watching.longestWait(), interrupted)
        await setTimeout(quietTime, undefined, { signal: interrupted })
      } catch (error) {
        if (interrupted.aborted || isFinal(explain(error))) throw error
        await requireSame()
        report(`mediabucket: ${explain(error)?.message ?? error}`, `Trying again in ${retryDelay / 1000} s.`)
        await setTimeout(retryDelay, undefined, { signal: interrupted })
      }
    }
  } finally {
    watching.stop()
  }
}

/** An error that does not pass: a rejected token, or an unexpected one. */
const isFinal = (explained: Error | null): boolean => explained === null || isRefusal(explained)

interface Watching {
  readonly stop: () => void
  /** To be called before and after a comparison. */
  readonly begin?: () => void
  readonly end?: () => void
  /** As in TreeOptions. */
  readonly onDirectory?: ((path: string) => Promise<void>) | undefined
  /** Milliseconds after which both sides are compared without a notification. */
  readonly longestWait: () => number
}

function createBell() {
  let { promise, resolve } = Promise.withResolvers<void>()
  return {
    ring: () => resolve(),
    reset() {
      ;({ promise, resolve } = Promise.withResolvers<void>())
    },
    async rung(longest: number, interrupted: AbortSignal): Promise<void> {
      const done = new AbortController()
      const signal = AbortSignal.any([interrupted, done.signal])
      try {
        await Promise.race([promise, setTimeout(longest, undefined, { signal })])
      } finally {
        done.abort()
      }
    },
  }
}

/** Rings when a file changes. Where the system cannot watch so many directories, the files are compared every minute. */
function watchFiles(ring: () => void, report: ClientContext['report']): Watching {
  let isWatching = true
  let pass = 0
  const watchers = new Map<string, { readonly identity: string; readonly close: () => void; pass: number }>()

  function fail(error: unknown): void {
    if (isWatching) report(`mediabucket: changes are found once a minute only: ${error}`)
    isWatching = false
    ring()
  }

  function drop(path: string): void {
    watchers.get(path)?.close()
    watchers.delete(path)
  }

  /** Node.js would watch each file below a directory of Linux, and could miss changes in a new directory. */
  const isRecursive = process.platform !== 'linux'

  async function watchDirectory(path: string): Promise<void> {
    if (!isWatching || (isRecursive && watchers.size > 0)) return
    const identity = await identityOf(path)
    const known = watchers.get(path)
    if (known?.identity === identity) {
      known.pass = pass
      return
    }
    drop(path)
    try {
      const watcher = watch(path, { recursive: isRecursive }, (event, name) => {
        // So ends the watch of a directory that was removed.
        if (!isRecursive && event === 'rename' && name === basename(path)) drop(path)
        ring()
      }).on('error', fail)
      watchers.set(path, { identity, close: () => watcher.close(), pass })
    } catch (error) {
      fail(error)
    }
  }

  return {
    stop: () => {
      for (const path of [...watchers.keys()]) drop(path)
    },
    longestWait: () => (isWatching ? longestWait : pollTime),
    begin() {
      pass += 1
    },
    end() {
      if (isRecursive) return
      for (const [path, watcher] of [...watchers]) if (watcher.pass < pass) drop(path)
    },
    // Before the directory is read, so that no change is missed.
    onDirectory: watchDirectory,
  }
}

/** Rings when an item of the bucket changes. */
async function followFeed(ring: () => void, { client, interrupted }: ClientContext): Promise<Watching> {
  const stopped = new AbortController()
  const signal = AbortSignal.any([interrupted, stopped.signal])
  let after = await client.latestCursor({ signal })

  async function follow(): Promise<void> {
    while (!signal.aborted) {
      try {
        for await (const { cursor } of client.changes({ after, signal })) {
          after = cursor
          ring()
        }
      } catch {
        // The comparison that follows reports the error, if it remains.
        await setTimeout(retryDelay, undefined, { signal })
        after = await client.latestCursor({ signal }).catch(() => after)
        ring()
      }
    }
  }
  follow().catch(() => {})
  return { stop: () => stopped.abort(), longestWait: () => longestWait }
}
