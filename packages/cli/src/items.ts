import type { Focus, ParameterFault } from '@mediabucket/client'
import { maxIds } from '@mediabucket/client/rules'
import {
  acceptedBy,
  type ClientContext,
  clientCommand,
  faultIn,
  readLabelKey,
  readLabels,
} from './client-command.ts'
import { CommandError, exitCodes, formatDuration, parse, readDuration, UsageError } from './command.ts'
import { hintAt, type ItemPath, itemsAt, pathWord, readItem, readPath, resolveItem } from './item-paths.ts'
import { itemReference, requireOwnUrls } from './item-references.ts'
import { confirm } from './questions.ts'
import { formatCount, formatSize, printableText, table } from './terminal.ts'

export const edit = clientCommand({
  help: `Usage: mediabucket edit ID|URL|PATH [--filename NAME] [--alt-text TEXT] [--caption TEXT] [--label KEY=VALUE …] [--unlabel KEY …] [--focus X,Y]

Changes the given texts and labels of the item and no others. An empty text removes the text. A path such as album/a.jpg is that
of the item with this key, otherwise of the newest that has it; ./a.jpg is one without a folder. A file that was uploaded singly has
no path.

Options:
  --filename NAME  The name, under which browsers save the file. Its type and its URL stay as they are.
  --alt-text TEXT  A text that replaces the picture where it is not shown.
  --caption TEXT   A text to show with the item.
  --label KEY=VALUE
                   A label to set. It can be given several times.
  --unlabel KEY    A label to remove. It can be given several times.
  --focus X,Y      The point of the picture that sizes keep that cut, from 0 to 1 of its width and its height, such as 0.3,0.5; or none.`,

  read(args) {
    const text = { type: 'string' } as const
    const { values, positionals } = parse('edit', {
      args: [...args],
      allowPositionals: true,
      options: {
        ...{ filename: text, 'alt-text': text, caption: text, focus: text },
        ...{ label: { ...text, multiple: true }, unlabel: { ...text, multiple: true } },
      },
    })
    const [reference, ...others] = positionals
    if (reference === undefined || others.length > 0)
      throw new UsageError('edit takes one ID, URL or path of an item. See: mediabucket ls')
    const { label = [], unlabel = [], focus, ...texts } = values
    const removed = unlabel.map((key): [string, null] => [readLabelKey('--unlabel', key), null])
    const labels = [...removed, ...readLabels(label)]
    const changes = {
      ...Object.fromEntries(
        Object.entries(texts).map(([name, value]) => [name.replace('-', '_'), value === '' ? null : value]),
      ),
      ...(labels.length === 0 ? {} : { labels: Object.fromEntries(labels) }),
      ...(focus === undefined ? {} : { focus: readFocus(focus) }),
    }
    if (Object.keys(changes).length === 0)
      throw new UsageError(
        'edit takes --filename, --alt-text, --caption, --label, --unlabel or --focus. See: mediabucket edit --help',
      )
    return { given: reference, reference: readItem(reference, itemReference), changes }
  },

  async run({ given, reference, changes }, context) {
    const { client, report, interrupted } = context
    await requireOwnUrls([reference], context)
    const item = await resolveItem(reference, context)
    await client.update(item, changes, { signal: interrupted }).catch((error: unknown) => {
      throw explainTexts(error, Object.keys(changes)) ?? error
    })
    report(`Edited ${given}`)
  },
})

/** Throws UsageError. */
function readFocus(text: string): Focus | null {
  if (text === 'none' || text === '') return null
  const [x, y] = text.split(',').map((share) => (/^ *\d*\.?\d+ *$/.test(share) ? Number(share) : Number.NaN))
  const isShare = (share: number | undefined): share is number =>
    share !== undefined && share >= 0 && share <= 1
  if (!isShare(x) || !isShare(y) || text.split(',').length > 2)
    throw new UsageError(
      `--focus takes two numbers from 0 to 1 with a comma, such as 0.3,0.5, or none, not "${text}"`,
    )
  return { x, y }
}

/** The error of texts that the service refuses, in terms of the options; null for any other error. */
function explainTexts(error: unknown, members: readonly string[]): UsageError | null {
  const labels = faultIn(error, 'labels')
  if (labels !== null) return new UsageError(`--label: ${labels.detail}`)
  const refused = members.flatMap((member) => {
    const fault = faultIn(error, member)
    if (fault === null) return []
    const limit = acceptedBy(fault)
    const text = limit === null ? 'the name of a file' : `a text of ${limit} without control characters`
    return [`--${member.replace('_', '-')} takes ${text}`]
  })
  return refused.length === 0 ? null : new UsageError(refused.join('. '))
}

export const rm = clientCommand({
  help: `Usage: mediabucket rm ID|URL|PATH …
       mediabucket rm --recursive FOLDER/ … [--yes]

Deletes each item without confirmation: permanently, or into the trash if the bucket has one. Items that do not exist are
reported, the others are deleted, and the exit code is ${exitCodes.notFound}. A path such as album/a.jpg stands for all items that have it; ./a.jpg
is one without a folder. A folder such as album/ stands for all items below it, and ./ for all items that have a path. A file
that was uploaded singly has no path: name it by its ID or URL.

Options:
  -r, --recursive  Delete the items of folders. Counts them first, and asks on a terminal.
  --yes            Do not ask. Without a terminal, folders need it.`,

  read(args) {
    const { values, positionals } = parse('rm', {
      args: [...args],
      allowPositionals: true,
      options: {
        recursive: { type: 'boolean', short: 'r', default: false },
        yes: { type: 'boolean', default: false },
      },
    })
    if (positionals.length === 0)
      throw new UsageError('rm takes the IDs, URLs or paths of items. See: mediabucket ls')
    const references = positionals.map((text) => readPath(text) ?? itemReference(text))
    const folder = references.find((reference) => typeof reference !== 'string' && reference.isFolder)
    if (folder !== undefined && !values.recursive)
      throw new UsageError(
        `${pathOf(folder)} is a folder. To delete its items: rm --recursive ${pathWord(pathOf(folder))}`,
      )
    const canAsk = process.stdin.isTTY === true && process.stderr.isTTY === true
    if (folder !== undefined && !values.yes && !canAsk)
      throw new UsageError('rm --recursive needs --yes where no terminal can ask')
    return { references, asks: !values.yes }
  },

  async run({ references, asks }, context) {
    const { report } = context
    await requireOwnUrls(references, context)
    const targets: Target[] = []
    for (const reference of references) targets.push(await findTarget(reference, context))
    const folders = targets.filter((target) => target.isFolder && target.ids.length > 0)
    if (folders.length > 0 && asks) {
      const counts = folders.map(
        ({ name, ids, bytes }) => `${formatCount(ids.length, 'item')} (${formatSize(bytes)}) below ${name}`,
      )
      if (!(await confirm(`Delete ${printableText(counts.join(', '))}?`)))
        throw new CommandError('Nothing was deleted.')
    }
    const missing = await deleteTargets(targets, context)
    for (const { name } of missing) {
      const hint = await hintAt(name, (folder) => `rm --recursive ${folder}`, context)
      report(`mediabucket: ${name}: There is no such item.${hint}`)
    }
    if (missing.length > 0)
      throw new CommandError(
        `${missing.length} of ${formatCount(references.length, 'item')} ${missing.length === 1 ? 'does' : 'do'} not exist. See: mediabucket ls`,
        exitCodes.notFound,
      )
  },
})

const pathOf = (reference: string | ItemPath) => (typeof reference === 'string' ? reference : reference.text)

/** What one argument of `rm` deletes. */
interface Target {
  /** As it was given. */
  readonly name: string
  /** Ids or URLs. */
  readonly ids: readonly string[]
  /** Of the items of a path. */
  readonly bytes: number
  readonly isFolder: boolean
}

async function findTarget(reference: string | ItemPath, context: ClientContext): Promise<Target> {
  if (typeof reference === 'string') return { name: reference, ids: [reference], bytes: 0, isFolder: false }
  const ids: string[] = []
  let bytes = 0
  for await (const { id, size } of itemsAt(reference, context)) {
    ids.push(id)
    bytes += size
  }
  return { name: reference.text, ids, bytes, isFolder: reference.isFolder }
}

/** Deletes the items of all targets in large requests, reports each target, and returns those that had none. */
async function deleteTargets(
  targets: readonly Target[],
  { client, interrupted, report }: ClientContext,
): Promise<readonly Target[]> {
  const wanted = targets.flatMap((target) => target.ids.map((id, index) => ({ target, id, index })))
  const counts = new Map<Target, number>()
  for (let start = 0; start < wanted.length; start += maxIds) {
    const batch = wanted.slice(start, start + maxIds)
    const result = await client.deleteMany(
      batch.map(({ id }) => id),
      { signal: interrupted },
    )
    const deleted = new Set(result.deleted.map(String))
    for (const { target, id, index } of batch) {
      const count = (counts.get(target) ?? 0) + (deleted.has(id) ? 1 : 0)
      counts.set(target, count)
      if (index < target.ids.length - 1 || count === 0) continue
      report(`Deleted ${target.isFolder ? `${formatCount(count, 'item')} below ` : ''}${target.name}`)
    }
  }
  return targets.filter((target) => (counts.get(target) ?? 0) === 0)
}

export const link = clientCommand({
  help: `Usage: mediabucket link ID|URL|PATH … [--expires DURATION] [--variant NAME] [--download] [--names]

Prints a signed URL for each item; a path such as album/a.jpg is that of the item with this key, otherwise of the newest that
has it. The URL needs no token until it expires, also in a private bucket. Everyone who has the URL can use it; it works only
unchanged. Items that do not exist are reported, and the exit code is ${exitCodes.notFound}.

Options:
  --expires DURATION  How long the links are valid: 30m, 12h, 7d. Default: 1h. The service limits it (MEDIABUCKET_MAX_LINK_LIFETIME).
  --variant NAME      Link to a smaller picture: thumb, medium or another size of the service. With '*', to the file and all sizes:
                      append &variant=NAME or &w=WIDTH to the link.
  --download          Browsers save the file instead of showing it.
  --names             Write the name of the item into its link.`,

  read(args) {
    const { values, positionals } = parse('link', {
      args: [...args],
      allowPositionals: true,
      options: {
        expires: { type: 'string', default: '1h' },
        variant: { type: 'string' },
        download: { type: 'boolean', default: false },
        names: { type: 'boolean' },
      },
    })
    if (positionals.length === 0)
      throw new UsageError('link takes the IDs, URLs or paths of items. See: mediabucket ls')
    return {
      given: positionals.map((text) => readItem(text, itemReference)),
      options: {
        expiresIn: readDuration('--expires', values.expires),
        variant: values.variant,
        download: values.download,
        names: values.names,
      },
    }
  },

  async run({ given, options }, context) {
    const { client, output, report, interrupted } = context
    await requireOwnUrls(given, context)
    const references: string[] = []
    for (const reference of given) references.push(await resolveItem(reference, context))
    const { urls, missing, expires_at } = await client
      .createLinks(references, { ...options, signal: interrupted })
      .catch((error: unknown) => {
        throw explainOption(error, options.variant) ?? error
      })
    await output.lines(references.map((reference) => urls.get(reference)).filter((url) => url !== undefined))
    if (urls.size > 0) report(`Valid until ${expires_at}`)
    for (const reference of missing) report(`mediabucket: ${reference}: There is no such item.`)
    if (missing.length > 0)
      throw new CommandError(
        `${missing.length} of ${formatCount(references.length, 'item')} ${missing.length === 1 ? 'does' : 'do'} not exist. See: mediabucket ls`,
        exitCodes.notFound,
      )
  },
})

/** The error of a lifetime or a variant that the service refuses, in terms of the option; null for any other error. */
function explainOption(error: unknown, variant: string | undefined): UsageError | null {
  const lifetime = faultIn(error, 'expires_in')
  if (lifetime !== null) return lifetimeError(lifetime)
  const size = faultIn(error, 'variant')
  return size && new UsageError(`--variant takes ${acceptedBy(size)}, not "${variant}"`)
}

function lifetimeError({ maximum }: ParameterFault): UsageError {
  const limit = maximum === undefined ? '' : ` of ${formatDuration(maximum)}`
  return new UsageError(
    `--expires is above the limit${limit} of the service. Use a shorter duration, or raise MEDIABUCKET_MAX_LINK_LIFETIME where the service runs`,
  )
}

export const trashList = clientCommand({
  help: `Usage: mediabucket trash list [--json]

Prints the items in the trash of the bucket, last deleted first: id, size, time of deletion, time until which they can be restored,
and name.

Options:
  --json  Print one JSON object per line.`,

  read: (args) => parse('trash list', { args: [...args], options: { json: { type: 'boolean' } } }).values,

  async run({ json }, { client, output, interrupted }) {
    for await (const item of client.trash({ signal: interrupted })) {
      const row = { ...item, filename: JSON.stringify(item.filename ?? '') }
      await (json ? output.json([item]) : output.lines(table(columns, [row], { header: false })))
    }
  },
})

interface Row {
  readonly id: string
  readonly size: number
  readonly deleted_at: string
  readonly expires_at: string
  readonly filename: string
}

const columns = [
  { header: 'ID', cell: ({ id }: Row) => id },
  { header: 'SIZE', cell: ({ size }: Row) => formatSize(size) },
  { header: 'DELETED', cell: ({ deleted_at }: Row) => deleted_at },
  { header: 'UNTIL', cell: ({ expires_at }: Row) => expires_at },
  { header: 'NAME', cell: ({ filename }: Row) => filename },
]

export const trashRestore = clientCommand({
  help: `Usage: mediabucket trash restore ID|URL …

Restores items from the trash with their earlier URLs and places. Items that are not in the trash are reported, the others are
restored, and the exit code is ${exitCodes.notFound}.`,

  read(args) {
    const { positionals } = parse('trash restore', { args: [...args], allowPositionals: true, options: {} })
    if (positionals.length === 0)
      throw new UsageError('trash restore takes the IDs or URLs of items. See: mediabucket trash list')
    return positionals.map(itemReference)
  },

  async run(references, context) {
    const { client, report, interrupted } = context
    await requireOwnUrls(references, context)
    const { restored, missing } = await client.restore(references, { signal: interrupted })
    for (const reference of restored) report(`Restored ${reference}`)
    for (const reference of missing) report(`mediabucket: ${reference}: The trash has no such item.`)
    if (missing.length > 0)
      throw new CommandError(
        `${missing.length} of ${formatCount(references.length, 'item')} ${missing.length === 1 ? 'is' : 'are'} not in the trash. See: mediabucket trash list`,
        exitCodes.notFound,
      )
  },
})

export const trashEmpty = clientCommand({
  help: `Usage: mediabucket trash empty

Deletes the items in the trash of the bucket permanently, without confirmation.`,

  read: (args) => parse('trash empty', { args: [...args], options: {} }),

  async run(_arguments, { client, report, interrupted }) {
    await client.emptyTrash({ signal: interrupted })
    report('Emptied the trash.')
  },
})
