import { basename } from 'node:path'
import type { Media } from '@mediabucket/client'
import { maxListLimit } from '@mediabucket/client/rules'
import { affectsAllFiles, type ClientContext, clientCommand, isRefusal } from './client-command.ts'
import { stateDirectory } from './client-settings.ts'
import { CommandError, exitCodes, parse, UsageError } from './command.ts'
import { type DownloadOutcome, downloadItems, type LocalItem, removeParts } from './downloads.ts'
import {
  hintAt,
  type ItemPath,
  itemsAt,
  itemThatCounts,
  pathWord,
  readItem,
  readPath,
  resolveItem,
} from './item-paths.ts'
import { bytesReference, itemReference, ownUrl, requireOwnUrls } from './item-references.ts'
import { readExclusions } from './local-files.ts'
import { downloadFile } from './output-file.ts'
import {
  createProgressBars,
  formatCount,
  formatOptions,
  formatSize,
  type LineFormat,
  printItem,
  readFormat,
} from './terminal.ts'
import { openTransfer, type Transfer } from './transfers.ts'
import { lockPaths, stateFiles } from './upload-state.ts'

/** Where the bytes of one item go. */
interface One {
  readonly reference: string | ItemPath
  /** As it was given. */
  readonly given: string
  /** A path, or `-` for standard output; null if none was given, which is standard output unless that is a terminal. */
  readonly file: string | null
}

/** Items that become files of a directory. */
interface Many {
  readonly directory: string
  /** Null for all items of the bucket. */
  readonly references: readonly (string | ItemPath)[] | null
  readonly isExcluded: (name: string) => boolean
  readonly isDryRun: boolean
  readonly format: LineFormat
}

export const get = clientCommand<One | Many>({
  help: `Usage: mediabucket get ID|URL|PATH [-o FILE]
       mediabucket get ID|URL|PATH|FOLDER/ … -d DIR [--dry-run] [--json | -0]
       mediabucket get --all DIR [--exclude PATTERN] [--dry-run] [--json | -0]

Writes the bytes of an item to standard output or to a file, or downloads several items, or all items of the bucket,
into a directory. A broken connection is continued at the byte where it broke. The token is sent to the service only, never
to a URL of another server; files of a private bucket that a media host serves are requested by a signed URL. A path such as
album/a.jpg is that of the item with this key, otherwise of the newest that has it; ./a.jpg is one without a folder. A folder
such as album/ stands for all items below it, whose paths below DIR begin in the folder. A file that was uploaded singly has no
path.

With a directory, six files are downloaded at a time, and checked by their SHA-256. To continue after an interruption, or to
download what is new, run the same command again: complete files are skipped, and partial ones continue. A file that
exists is never replaced: items with equal names get a number (photo-2.jpg), and so does a folder with the path of an item. Characters that are not valid in the names of
files become _, and so does a dot at the start; changed names are listed. Prints the URL, a tab and the path of each file. Items that do not exist are
reported, and the exit code is ${exitCodes.notFound}. Files that could not be downloaded are listed at the end, and the exit code is 1.

Options:
  -o, --output FILE     Write to FILE, which is created or replaced when the download is complete, with its permissions. If it is a
                        link, its target is replaced; a FIFO or a device is written to. - is standard output.
  -d, --directory DIR   Download the items into DIR, which is created if it does not exist.
  --all                 Download all items of the bucket, oldest first. Those of a folder have their paths below DIR.
  --exclude PATTERN     Skip the items whose names match, such as '*.mp4'. Can be given several times.
  --dry-run             Print what would be downloaded, and change nothing.
  --json                Print one JSON object per line: id, url, path, size, whether the file was there before, and renamed_from if
                        it has another name than the item.
  -0, --null            End each line with a NUL character instead, and print paths unchanged, for xargs -0.`,

  read(args) {
    const { values, positionals } = parse('get', {
      args: [...args],
      allowPositionals: true,
      options: {
        output: { type: 'string', short: 'o' },
        directory: { type: 'string', short: 'd' },
        all: { type: 'boolean', default: false },
        exclude: { type: 'string', multiple: true },
        'dry-run': { type: 'boolean', default: false },
        ...formatOptions,
      },
    })
    const { output, directory, all, exclude, 'dry-run': isDryRun } = values
    if (directory === '') throw new UsageError('-d takes the path of a directory')
    if (output === '') throw new UsageError('-o takes the path of a file')
    const many = { isExcluded: readExclusions(exclude ?? []), isDryRun, format: readFormat(values) }
    if (output !== undefined && (all || directory !== undefined))
      throw new UsageError('get takes -o for one item, or a directory for several')
    if (all) {
      const [target, ...others] = [...(directory === undefined ? [] : [directory]), ...positionals]
      if (target === undefined || others.length > 0)
        throw new UsageError('get --all takes one directory, and no items')
      return { ...many, directory: target, references: null }
    }
    if (exclude !== undefined) throw new UsageError('--exclude needs --all')
    if (directory !== undefined) {
      if (positionals.length === 0)
        throw new UsageError('get -d takes the IDs, URLs or paths of items. See: mediabucket ls')
      const references = positionals.map((text) => readPath(text) ?? itemReference(text))
      return { ...many, directory, references }
    }
    if (isDryRun || many.format !== 'lines')
      throw new UsageError('--dry-run, --json and -0 need -d DIR or --all DIR')
    const [reference, ...more] = positionals
    if (reference === undefined || more.length > 0)
      throw new UsageError('get takes one ID, URL or path, or several with -d DIR. See: mediabucket ls')
    if (readPath(reference)?.isFolder === true)
      throw new UsageError(`${reference} is a folder: get ${pathWord(reference)} -d DIR`)
    return { given: reference, reference: readItem(reference, bytesReference), file: output ?? null }
  },

  target: (args) => ('given' in args && URL.canParse(args.given) ? args.given : null),

  run: (args, context) => ('reference' in args ? getOne(args, context) : getMany(args, context)),
})

async function getOne({ reference: asked, given, file }: One, context: ClientContext): Promise<void> {
  const { output, interrupted } = context
  const signal = AbortSignal.any([interrupted, output.closed])
  const write = file === null || file === '-' ? null : await downloadFile(file)
  const transfer = await openItem(asked, given, signal, context)
  const name = write === null ? given : basename(file ?? '')
  if (write !== null) return await write(withProgress(transfer, name), signal)
  if (file === null && output.isTerminal) return await writeText(transfer, context)
  const chunks = output.isTerminal ? transfer.chunks : withProgress(transfer, name)
  for await (const chunk of chunks) await output.bytes(chunk)
}

const getFolder = (folder: string) => `get ${folder} -d DIR`

/** Requests the bytes. If there is no such item, the error says what else has the name. */
async function openItem(
  asked: One['reference'],
  given: string,
  signal: AbortSignal,
  context: ClientContext,
): Promise<Transfer> {
  try {
    const reference = await ownUrl(await resolveItem(asked, context), context)
    return await openTransfer(context.client, reference, { signal })
  } catch (error) {
    const explained = context.explain(error)
    if (!(explained instanceof CommandError) || explained.exitCode !== exitCodes.notFound) throw error
    const hint = await hintAt(given, getFolder, context)
    throw hint === ''
      ? error
      : new CommandError(`there is no item ${JSON.stringify(given)}.${hint}`, exitCodes.notFound)
  }
}

/** The chunks, with a bar on standard error. */
async function* withProgress({ chunks, size }: Transfer, name: string): AsyncGenerator<Uint8Array> {
  const bars = createProgressBars(process.stderr)
  let done = 0
  try {
    for await (const chunk of chunks) {
      done += chunk.length
      bars.show([{ name, done, total: size, skipped: 0 }])
      yield chunk
    }
  } finally {
    bars.clear()
  }
}

/** Writes a text to a terminal. Other bytes could change its state, or send input to it. */
async function writeText({ chunks, headers, size }: Transfer, { output }: ClientContext): Promise<void> {
  const decoder = new TextDecoder('utf-8', { fatal: true })
  const decode = (chunk?: Uint8Array) => {
    try {
      const text = decoder.decode(chunk, { stream: chunk !== undefined })
      return /[^\P{Cc}\t\r\n]/u.test(text) ? null : text
    } catch {
      return null
    }
  }
  const write = async (chunk?: Uint8Array) => {
    const text = decode(chunk)
    if (text !== null) return await output.bytes(text)
    const type = headers.get('content-type') ?? 'unknown type'
    throw new CommandError(
      `the item is not plain text (${type}${size === null ? '' : `, ${formatSize(size)}`}), so it is not written to the terminal. Save it with -o FILE, or write it anyway with -o -`,
    )
  }
  for await (const chunk of chunks) await write(chunk)
  await write()
}

async function getMany(args: Many, context: ClientContext): Promise<void> {
  const { directory, references, isExcluded, isDryRun, format } = args
  const { client, output, interrupted, explain } = context
  await requireOwnUrls(references ?? [], context)
  const start = performance.now()
  const missing: { reference: string; hint: string }[] = []
  const unavailable: { path: string; reason: string }[] = []
  let excluded = 0

  async function* wanted(): AsyncGenerator<Media> {
    if (references === null) {
      for await (const item of client.items({ signal: interrupted, batchSize: maxListLimit })) {
        if (isExcluded(item.filename ?? item.id)) excluded += 1
        else yield item
      }
      return
    }
    const seen = new Set<string>()
    for (const reference of references)
      for await (const item of typeof reference === 'string' ? described(reference) : found(reference)) {
        if (seen.has(item.id)) continue
        seen.add(item.id)
        yield item
      }
  }

  async function* described(reference: string): AsyncGenerator<Media> {
    const item = await describe(reference)
    // Only the items of folders have their paths below the directory.
    if (item !== null) yield { ...item, path: null }
  }

  async function* found(path: ItemPath): AsyncGenerator<Media> {
    let isFound = false
    const same: Media[] = []
    for await (const item of itemsAt(path, context, { keys: !path.isFolder })) {
      isFound = true
      if (path.isFolder) yield { ...item, path: item.path?.slice(path.path.length) ?? null }
      else same.push(item)
    }
    if (!isFound) await noteMissing(path.text)
    const item = itemThatCounts(same)
    if (item !== null) yield { ...item, path: null }
  }

  async function noteMissing(reference: string): Promise<void> {
    missing.push({ reference, hint: await hintAt(reference, getFolder, context) })
  }

  /** Null for an item that does not exist, or cannot be read while others can. */
  async function describe(reference: string): Promise<Media | null> {
    try {
      return await client.describe(reference, { signal: interrupted })
    } catch (error) {
      const explained = explain(error)
      if (interrupted.aborted || explained === null || affectsAllFiles(error, explained)) throw error
      if (explained instanceof CommandError && explained.exitCode === exitCodes.notFound)
        await noteMissing(reference)
      else unavailable.push({ path: reference, reason: explained.message })
      return null
    }
  }

  async function print({ item, path, isPresent, renamedFrom }: LocalItem): Promise<void> {
    if (output.closed.aborted) return
    const more = { present: isPresent, ...(renamedFrom !== null && { renamed_from: renamedFrom }) }
    await printItem(output, format, item, path, more).catch(() => {})
  }

  // Without this directory, a second download into the same one is not detected.
  const state = stateFiles(stateDirectory('downloads'), () => {})
  const release = isDryRun
    ? async () => {}
    : await lockPaths(state, {
        owner: 'downloads',
        paths: [directory],
        activity: 'download into this directory',
      })
  try {
    const bucket = references === null ? await client.bucket({ signal: interrupted }) : null
    const hasFolder = references?.some((one) => typeof one !== 'string' && one.isFolder) ?? true
    const total = { items: bucket?.items ?? references?.length ?? 0, bytes: bucket?.bytes ?? 0 }
    const { failed, ...downloads } = await downloadItems(
      wanted(),
      { directory, total, isDryRun, naming: 'paths', print },
      context,
    )
    const outcome = { ...downloads, failed: [...unavailable, ...failed] }
    const isWhole = references === null && outcome.end === null && outcome.failed.length === 0
    if (isWhole && !isDryRun) await removeParts(directory)
    const seconds = ((performance.now() - start) / 1000).toFixed(1)
    const count = hasFolder ? null : (references?.length ?? null)
    summarize(outcome, { excluded, missing, isDryRun, seconds, total: count }, context)
  } finally {
    await release(false)
  }
}

interface Summary {
  readonly excluded: number
  /** With what each may stand for. */
  readonly missing: readonly { readonly reference: string; readonly hint: string }[]
  readonly isDryRun: boolean
  readonly seconds: string
  /** The items of the command; null for those of the bucket or of folders. */
  readonly total: number | null
}

/** Reports the result, and throws the error of the command if there is one. */
function summarize(outcome: DownloadOutcome, summary: Summary, { report, explain }: ClientContext): void {
  const { downloaded, present, renamed, failed, end } = outcome
  const { excluded, missing, isDryRun, seconds } = summary
  const bytes = formatSize(downloaded.reduce((sum, size) => sum + size, 0))
  const all = summary.total ?? downloaded.length + present + failed.length + outcome.untried
  const count = `${downloaded.length} of ${formatCount(all, 'file')}, ${bytes}`
  report(isDryRun ? `Would download ${count}.` : `Downloaded ${count} in ${seconds} s.`)
  if (present > 0) report(`Complete before: ${formatCount(present, 'file')}.`)
  if (renamed.length > 0)
    report(
      `Names changed for this directory: ${renamed.length}.`,
      ...renamed.map(({ from, to }) => `  ${from} is ${to}`),
    )
  if (excluded > 0) report(`Excluded: ${formatCount(excluded, 'file')}.`)
  for (const { reference, hint } of missing)
    report(`mediabucket: ${reference}: There is no such item.${hint}`)
  if (failed.length > 0)
    report('Not downloaded:', ...failed.map(({ path, reason }) => `  ${path}: ${reason}`))
  if (end !== null) {
    if (!isRefusal(explain(end))) report('Run the same command again to continue.')
    throw end
  }
  if (failed.length > 0)
    throw new CommandError(
      `${failed.length} of ${formatCount(all, 'file')} ${failed.length === 1 ? 'was' : 'were'} not downloaded`,
    )
  if (missing.length > 0)
    throw new CommandError(
      `${missing.length} of ${formatCount(all, 'item')} ${missing.length === 1 ? 'does' : 'do'} not exist. See: mediabucket ls`,
      exitCodes.notFound,
    )
}
