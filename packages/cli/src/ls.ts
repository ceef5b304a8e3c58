import type { Client, ItemOptions, Media, Page } from '@mediabucket/client'
import { itemKinds, listOrders, maxListLimit } from '@mediabucket/client/rules'
import { acceptedBy, type ClientContext, clientCommand, faultIn, readLabels } from './client-command.ts'
import { CommandError, exitCodes, parse, UsageError } from './command.ts'
import { type ItemPath, itemsAt, noItemAt, readAnyPath } from './item-paths.ts'
import { type Column, formatCount, formatSize, table } from './terminal.ts'

export const ls = clientCommand({
  help: `Usage: mediabucket ls [-l] [--page N | --all] [--json]
       mediabucket ls PATH [-R] [-l] [--json]
       mediabucket ls --keys [PREFIX] [-R] [-l] [--json]
       mediabucket ls [--newest | --order ORDER] [--kind KIND] [--name TEXT] [--label KEY=VALUE …] [--names] [-l] [--all] [--json]

Prints the URLs of the items, one per line, oldest first. With a path, prints the paths of the items in this folder, in the order of
the paths, and those of the folders in it, which end with a slash; for the path of an item only this one. ./ is the top.
With --keys, prints the keys of items for programs that speak S3 which begin with the prefix, in the order of their bytes.

Options:
  -l, --long  Print id, size, date, type and name of each item. On a terminal: a table with sizes in decimal units and
              dates in local time. Elsewhere: separated by tabs, with sizes in bytes and dates in UTC (RFC 3339).
  -R, --recursive
              List all items below the folder. Without a path, all items that have one. With --keys, all keys.
  --keys      List keys instead of paths. Keys with a slash after the prefix are one line each up to this slash, as folders.
              Items without a key are left out; programs that speak S3 find them below _items/.
  --page N    The page to list, of ten items each. Default: 1.
  --all       List all items. Default: ten.
  --newest    List the newest items first.
  --order ORDER
              oldest, newest, taken (the time at which pictures and videos were taken, else that of the upload),
              taken-desc, name or name-desc.
  --kind KIND List the items of a kind: image, video, audio, document or other.
  --name TEXT List the items whose name contains every word of the text, in upper or lower case.
  --label KEY=VALUE
              List the items that have the label, with exactly this value. With several, those that have them all.
  --names     Print URLs that have the names of the items.
  --json      Print the JSON object of each page, one per line; with -l, a path, --keys, --newest, --order, --kind, --name, --label or --names
              that of each item.
              A folder is an object with its path or its key, and "folder": true.`,

  read(args) {
    const { values, positionals } = parse('ls', {
      args: [...args],
      allowPositionals: true,
      options: {
        recursive: { type: 'boolean', short: 'R' },
        keys: { type: 'boolean' },
        long: { type: 'boolean', short: 'l' },
        page: { type: 'string' },
        all: { type: 'boolean' },
        newest: { type: 'boolean' },
        order: { type: 'string' },
        kind: { type: 'string' },
        name: { type: 'string' },
        label: { type: 'string', multiple: true },
        names: { type: 'boolean' },
        json: { type: 'boolean' },
      },
    })
    const {
      long = false,
      page,
      all = false,
      json = false,
      newest = false,
      order,
      kind,
      name,
      label = [],
      names = false,
      recursive = false,
      keys = false,
    } = values
    const [given, ...others] = positionals
    if (others.length > 0) throw new UsageError('ls takes one path of a folder or an item')
    if (all && page !== undefined) throw new UsageError('ls takes --page or --all, not both')
    if (page !== undefined && !isPageNumber(page))
      throw new UsageError(`--page takes a whole number of at least 1, not "${page}"`)
    if (newest && order !== undefined) throw new UsageError('ls takes --newest or --order, not both')
    const isList =
      newest || names || order !== undefined || kind !== undefined || name !== undefined || label.length > 0
    if (isList && page !== undefined)
      throw new UsageError(
        'ls takes --page, or --newest, --order, --kind, --name, --label and --names, not both',
      )
    const top = recursive && !keys ? './' : undefined
    const path = keys ? null : readGiven(given ?? top)
    const prefix = keys ? (given ?? '') : null
    if (prefix !== null && (isList || page !== undefined))
      throw new UsageError('ls takes --keys with a prefix, -R, -l, --all and --json only')
    if (path !== null && (isList || page !== undefined))
      throw new UsageError('ls takes a path or -R with -l, --all and --json only')
    const found = itemKinds.find((name) => name === kind)
    if (kind !== undefined && found === undefined)
      throw new UsageError(`--kind takes one of ${itemKinds.join(', ')}, not "${kind}"`)
    const listed = listOrders.find((name) => name === (newest ? 'newest' : (order ?? 'oldest')))
    if (listed === undefined)
      throw new UsageError(`--order takes one of ${listOrders.join(', ')}, not "${order}"`)
    const list: ItemOptions | null = isList
      ? {
          order: listed,
          kind: found,
          name,
          labels: Object.fromEntries(readLabels(label)),
          ...(names ? { names } : {}),
        }
      : null
    return { number: Number(page ?? 1), long, all, json, list, path, prefix, recursive }
  },

  async run({ number, long, all, json, list, path, prefix, recursive }, context) {
    const { client, output, report, interrupted } = context
    const signal = AbortSignal.any([interrupted, output.closed])
    const listed = { ...context, interrupted: signal }
    if (path !== null) return await listPath(path, { long, json, recursive }, listed)
    if (prefix !== null) {
      const keyed = client.items({ key: prefix, batchSize: maxListLimit, signal })
      const entries = withFolders(keyed, { member: 'key', start: prefix, isFolded: !recursive })
      const count = await printEntries(entries, { long, json, member: 'key' }, listed)
      if (count === 0 && prefix !== '')
        throw new CommandError(
          `the bucket has no keys that begin with ${JSON.stringify(prefix)}. See: mediabucket ls --keys`,
          exitCodes.notFound,
        )
      return
    }
    let isFirst = true
    async function printItems(items: readonly Media[]): Promise<void> {
      if (json) return await output.json(items)
      if (!long) return await output.lines(items.map(({ url }) => url))
      if (!output.isTerminal) return await output.lines(items.map((item) => cellsOf(item)))
      const header = isFirst && items.length > 0
      isFirst = false
      await output.lines(table(columns, items, { header }))
    }
    const print = async (page: Page) => {
      if (long) return await printItems(await itemsOf(client, page, signal))
      await (json ? output.json([page]) : output.lines(page.data))
    }
    if (list !== null) {
      const items = client.items({ ...list, signal, batchSize: all ? batchSize : defaultCount })
      try {
        for await (const batch of batchesOf(items, all ? Number.POSITIVE_INFINITY : defaultCount))
          await printItems(batch)
      } catch (error) {
        throw explainName(error, list.name) ?? error
      }
      return
    }
    if (all) {
      for await (const page of client.pages({ signal })) await print(page)
      return
    }
    const page = await client.listPage(number, { signal })
    await print(page)
    if (!json) report(describePage(page))
  },
})

interface PathOptions {
  readonly long: boolean
  readonly json: boolean
  readonly recursive: boolean
}

/** An item, or a folder by what the paths or keys of its items begin with. */
type Entry = Media | { readonly folder: string }

/** What a list is ordered by. */
type Member = 'path' | 'key'

const readGiven = (path: string | undefined): ItemPath | null =>
  path === undefined ? null : readAnyPath(path)

/** Prints a folder or the items of a path. Throws CommandError if the bucket has neither. */
async function listPath(
  path: ItemPath,
  { long, json, recursive }: PathOptions,
  context: ClientContext,
): Promise<void> {
  const folding = { member: 'path', start: path.path, isFolded: !recursive && path.isFolder } as const
  const entries = withFolders(itemsAt(path, context), folding)
  const count = await printEntries(entries, { long, json, member: 'path' }, context)
  // Without a slash, it may be a folder.
  if (count > 0 || path.isFolder) {
    if (count === 0 && path.path !== '') throw noItemAt(path)
    return
  }
  const folder = { text: `${path.text}/`, path: `${path.path}/`, isFolder: true }
  await listPath(folder, { long, json, recursive }, context)
}

/** Prints entries in batches. Returns how many they were. */
async function printEntries(
  entries: AsyncIterable<Entry>,
  { long, json, member }: Pick<PathOptions, 'long' | 'json'> & { readonly member: Member },
  { output }: Pick<ClientContext, 'output'>,
): Promise<number> {
  let batch: Entry[] = []
  let count = 0
  const print = async () => {
    count += batch.length
    if (json)
      await output.json(
        batch.map((entry) => ('folder' in entry ? { [member]: entry.folder, folder: true } : entry)),
      )
    else if (!long) await output.lines(batch.map((entry) => textOf(entry, member)))
    else if (output.isTerminal) await output.lines(table(columnsOf(member), batch, { header: false }))
    else
      await output.lines(
        batch.map((entry) =>
          'folder' in entry ? ['', '', '', '', entry.folder] : cellsOf(entry, textOf(entry, member)),
        ),
      )
    batch = []
  }
  for await (const entry of entries) {
    batch.push(entry)
    if (batch.length === batchSize) await print()
  }
  await print()
  return count
}

/** Items in the order of their paths or keys, which begin with `start`; if it is folded, one entry for all that have the same text up to a slash after it. */
async function* withFolders(
  items: AsyncIterable<Media>,
  {
    member,
    start,
    isFolded,
  }: { readonly member: Member; readonly start: string; readonly isFolded: boolean },
): AsyncGenerator<Entry> {
  let last = ''
  for await (const item of items) {
    const [name = '', ...below] = textOf(item, member).slice(start.length).split('/')
    const folder = `${start}${name}/`
    if (!isFolded || below.length === 0) yield item
    else if (folder !== last) {
      last = folder
      yield { folder }
    }
  }
}

const textOf = (entry: Entry, member: Member): string =>
  'folder' in entry ? entry.folder : (entry[member] ?? '')

/** The error of a text that the service refuses, in terms of the option; null for any other error. */
function explainName(error: unknown, name: string | undefined): UsageError | null {
  const fault = faultIn(error, 'name')
  return fault && new UsageError(`--name takes a text of ${acceptedBy(fault)}, not "${name}"`)
}

const describePage = ({ current_page: number, last_page: last, total }: Page): string => {
  const count = `${formatCount(total, 'item')} in total.`
  if (number <= last) return `Page ${number} of ${last}; ${count}`
  const pages = last === 1 ? 'The only page is page 1' : `The pages are 1 to ${last}`
  return `There is no page ${number}. ${pages}; ${count}`
}

/** Items without --all, as many as on a page. */
const defaultCount = 10
/** Items that are requested and printed together with --all. */
const batchSize = 200

/** The first `limit` items, in batches. */
async function* batchesOf(items: AsyncIterable<Media>, limit: number): AsyncGenerator<Media[]> {
  let batch: Media[] = []
  let left = limit
  for await (const item of items) {
    batch.push(item)
    left -= 1
    if (batch.length === batchSize) {
      yield batch
      batch = []
    }
    if (left === 0) break
  }
  yield batch
}

/** Padded, so that the tables of several pages are aligned. */
const columns: readonly Column<Media>[] = [
  { header: 'ID', cell: ({ id }) => id },
  { header: '    SIZE', cell: ({ size }) => formatSize(size).padStart(8), alignRight: true },
  { header: 'CREATED', cell: ({ created_at }) => localTime(new Date(created_at)) },
  { header: 'TYPE', cell: ({ content_type }) => content_type.padEnd(24) },
  { header: 'NAME', cell: ({ filename }) => filename ?? '-' },
]

/** As `columns`, with paths or keys instead of names. Cells of folders are empty. */
const columnsOf = (member: Member): readonly Column<Entry>[] => [
  ...columns.slice(0, -1).map(({ cell, ...column }) => ({
    ...column,
    cell: (entry: Entry) => ('folder' in entry ? ' '.repeat(column.header === 'ID' ? 28 : 0) : cell(entry)),
  })),
  { header: member.toUpperCase(), cell: (entry) => textOf(entry, member) },
]

const cellsOf = (item: Media, name = item.filename ?? ''): string[] => [
  item.id,
  `${item.size}`,
  item.created_at,
  item.content_type,
  name,
]

/** `2026-11-22 14:05`. */
function localTime(date: Date): string {
  const two = (number: number) => String(number).padStart(2, '0')
  const day = [date.getFullYear(), two(date.getMonth() + 1), two(date.getDate())].join('-')
  return `${day} ${two(date.getHours())}:${two(date.getMinutes())}`
}

/** The items of a page, without those that were deleted after it was listed. */
async function itemsOf(client: Client, page: Page, signal: AbortSignal): Promise<Media[]> {
  const found = await Promise.all(
    page.data.map((url) => client.describe(url, { signal }).catch(nullIfDeleted)),
  )
  return found.filter((item) => item !== null)
}

function nullIfDeleted(error: unknown): null {
  if (error instanceof Error && 'status' in error && error.status === 404) return null
  throw error
}

const isPageNumber = (text: string): boolean => /^[1-9]\d*$/.test(text) && Number.isSafeInteger(Number(text))
