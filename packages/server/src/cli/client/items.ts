import { CommandError, exitCodes, formatDuration, parse, readDuration, UsageError } from '../command.ts'
import { formatCount, formatSize, table } from '../terminal.ts'
import { clientCommand, faultIn, itemReference, readLabelKey, readLabels } from './client-command.ts'

export const edit = clientCommand({
  help: `Usage: mediabucket edit ID|URL [--filename NAME] [--alt-text TEXT] [--caption TEXT] [--label KEY=VALUE …] [--unlabel KEY …]

Changes the given texts and labels of the item and no others. An empty text removes the text.

Options:
  --filename NAME  The name, under which browsers save the file. Its type and its URL stay as they are.
  --alt-text TEXT  A text that replaces the picture where it is not shown.
  --caption TEXT   A text to show with the item.
  --label KEY=VALUE
                   A label to set. It can be given several times.
  --unlabel KEY    A label to remove. It can be given several times.`,

  read(args) {
    const text = { type: 'string' } as const
    const { values, positionals } = parse('edit', {
      args: [...args],
      allowPositionals: true,
      options: {
        ...{ filename: text, 'alt-text': text, caption: text },
        ...{ label: { ...text, multiple: true }, unlabel: { ...text, multiple: true } },
      },
    })
    const [reference, ...others] = positionals
    if (reference === undefined || others.length > 0)
      throw new UsageError('edit takes one ID or URL of an item. See: mediabucket ls')
    const { label = [], unlabel = [], ...texts } = values
    const removed = unlabel.map((key): [string, null] => [readLabelKey('--unlabel', key), null])
    const labels = [...removed, ...readLabels(label)]
    const changes = {
      ...Object.fromEntries(
        Object.entries(texts).map(([name, value]) => [name.replace('-', '_'), value === '' ? null : value]),
      ),
      ...(labels.length === 0 ? {} : { labels: Object.fromEntries(labels) }),
    }
    if (Object.keys(changes).length === 0)
      throw new UsageError(
        'edit takes --filename, --alt-text, --caption, --label or --unlabel. See: mediabucket edit --help',
      )
    return { reference: itemReference(reference), changes }
  },

  async run({ reference, changes }, { client, report, interrupted }) {
    await client.update(reference, changes, { signal: interrupted }).catch((error: unknown) => {
      throw explainTexts(error, Object.keys(changes)) ?? error
    })
    report(`Edited ${reference}`)
  },
})

/** The error of texts that the service refuses, in terms of the options; null for any other error. */
function explainTexts(error: unknown, members: readonly string[]): UsageError | null {
  const labels = faultIn(error, 'labels')
  if (labels !== null) return new UsageError(`--label: ${labels}`)
  const refused = members.flatMap((member) => {
    // Only the text of the fault has the limits.
    const [, accepted] = /^Null, or a string (.*)\.$/.exec(faultIn(error, member) ?? '') ?? []
    return accepted === undefined ? [] : [`--${member.replace('_', '-')} takes a text ${accepted}`]
  })
  return refused.length === 0 ? null : new UsageError(refused.join('. '))
}

/** Items per request, and so per report. */
const requestLength = 500

export const rm = clientCommand({
  help: `Usage: mediabucket rm ID|URL …

Deletes each item without confirmation: permanently, or into the trash if the bucket has one. Items that do not exist are
reported, the others are deleted, and the exit code is ${exitCodes.notFound}.`,

  read(args) {
    const { positionals } = parse('rm', { args: [...args], allowPositionals: true, options: {} })
    if (positionals.length === 0)
      throw new UsageError('rm takes the IDs or URLs of items. See: mediabucket ls')
    return positionals.map(itemReference)
  },

  async run(references, { client, report, interrupted }) {
    let missing = 0
    for (let start = 0; start < references.length; start += requestLength) {
      const result = await client.deleteMany(references.slice(start, start + requestLength), {
        signal: interrupted,
      })
      for (const reference of result.deleted) report(`Deleted ${reference}`)
      for (const reference of result.missing) report(`mediabucket: ${reference}: There is no such item.`)
      missing += result.missing.length
    }
    if (missing > 0)
      throw new CommandError(
        `${missing} of ${formatCount(references.length, 'item')} ${missing === 1 ? 'does' : 'do'} not exist. See: mediabucket ls`,
        exitCodes.notFound,
      )
  },
})

export const link = clientCommand({
  help: `Usage: mediabucket link ID|URL … [--expires DURATION] [--variant NAME] [--download]

Prints a signed URL for each item. It needs no token until it expires, also in a private bucket. Everyone who has the URL can
use it; it works only unchanged. Items that do not exist are reported, and the exit code is ${exitCodes.notFound}.

Options:
  --expires DURATION  How long the links are valid: 30m, 12h, 7d. Default: 1h. The service limits it (MEDIABUCKET_MAX_LINK_LIFETIME).
  --variant NAME      Link to a smaller picture: thumb, medium or another size of the service.
  --download          Browsers save the file instead of showing it.`,

  read(args) {
    const { values, positionals } = parse('link', {
      args: [...args],
      allowPositionals: true,
      options: {
        expires: { type: 'string', default: '1h' },
        variant: { type: 'string' },
        download: { type: 'boolean', default: false },
      },
    })
    if (positionals.length === 0)
      throw new UsageError('link takes the IDs or URLs of items. See: mediabucket ls')
    return {
      references: positionals.map(itemReference),
      options: {
        expiresIn: readDuration('--expires', values.expires),
        variant: values.variant,
        download: values.download,
      },
    }
  },

  async run({ references, options }, { client, output, report, interrupted }) {
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
  // Only the texts of the faults have the limit and the names.
  const [, names] = /: (.+);/.exec(faultIn(error, 'variant') ?? '') ?? []
  return names === undefined ? null : new UsageError(`--variant takes one of ${names}, not "${variant}"`)
}

function lifetimeError(detail: string): UsageError {
  const [, seconds] = / to (\d+)/.exec(detail) ?? []
  const limit = seconds === undefined ? '' : ` of ${formatDuration(Number(seconds))}`
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

  async run(references, { client, report, interrupted }) {
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
