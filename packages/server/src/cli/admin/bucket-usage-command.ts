import { parse, UsageError } from '@mediabucket/cli/command'
import { type Column, formatSize, jsonLine, table } from '@mediabucket/cli/terminal'
import type { BucketUsage, Usage } from '@mediabucket/client'
import { findUsage, listUsageOperation } from '../../buckets/usage-operations.ts'
import { Fault } from '../../core/faults.ts'
import { dayOf } from '../../core/times.ts'
import { maxUsageLimit, parseUsageListQuery, parseUsageQuery } from '../../core/usage-queries.ts'
import type { Catalog } from '../../storage/catalog/catalog.ts'
import { type AdministrationContext, administer, administrationCommand } from './administration.ts'

export const bucketUsage = administrationCommand({
  help: `Usage: mediabucket bucket usage NAME [--from DAY] [--to DAY] [--json]
       mediabucket bucket usage [--day DAY] [--json]

Prints a line for each day of a bucket, or for each bucket on one day, also for deleted ones. A day is a date in UTC, such as 2026-11-29, among
the last 400. Downloads and requests are stored within a minute. The header is printed on a terminal only.

Options:
  --from DAY  The first day; by default the 30th up to that of --to.
  --to DAY    The last day; by default today.
  --day DAY   The day of all buckets; by default today.
  --json      Print one JSON object per line, as of GET /api/buckets/{name}/usage and GET /api/usage.`,

  async run(args, context) {
    const { values, positionals } = parse('bucket usage', {
      args: [...args],
      allowPositionals: true,
      options: {
        ...{ from: { type: 'string' }, to: { type: 'string' }, day: { type: 'string' } },
        json: { type: 'boolean', default: false },
      },
    })
    const { from, to, day, json } = values
    const [name, ...more] = positionals
    if (more.length > 0 || (name === undefined ? from !== undefined || to !== undefined : day !== undefined))
      throw new UsageError(
        'bucket usage takes a NAME with --from and --to, or --day alone. See: mediabucket bucket usage --help',
      )
    if (name === undefined) await printBuckets(context, day, json)
    else await printDays(context, name, { from, to }, json)
  },
})

async function printDays(
  context: AdministrationContext,
  name: string,
  days: { readonly from: string | undefined; readonly to: string | undefined },
  asJson: boolean,
): Promise<void> {
  const now = Date.now()
  const query = readDays(() => parseUsageQuery(given(days), dayOf(now)))
  const show = (usage: readonly Usage[]) => print(context, usage, [dayColumn, ...counts], asJson)
  await administer(
    context,
    async ({ service }) => show(await service.buckets.usage(name, days)),
    async (catalog) => show((await findUsage(catalog, name, query, now)).data),
  )
}

async function printBuckets(
  context: AdministrationContext,
  day: string | undefined,
  asJson: boolean,
): Promise<void> {
  const now = Date.now()
  const query = readDays(() => parseUsageListQuery(given({ day }), dayOf(now)))
  const show = (usage: readonly BucketUsage[]) => print(context, usage, [bucketColumn, ...counts], asJson)
  await administer(
    context,
    async ({ service }) => {
      const found: BucketUsage[] = []
      for await (const usage of service.usage({ day })) found.push(usage)
      show(found)
    },
    async (catalog) => show(await usageOfAll(catalog, query.day, now)),
  )
}

async function usageOfAll(catalog: Catalog, day: number, now: number): Promise<BucketUsage[]> {
  const listUsage = listUsageOperation({ catalog })
  const found: BucketUsage[] = []
  let after: string | null = null
  do {
    const { data, next_cursor } = await listUsage({ day, limit: maxUsageLimit, after }, now)
    found.push(...data)
    after = next_cursor
  } while (after !== null)
  return found
}

const given = (values: Readonly<Record<string, string | undefined>>) =>
  Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined))

/** Throws UsageError for what a request with these days would be refused for. */
function readDays<Query>(read: () => Query): Query {
  try {
    return read()
  } catch (error) {
    const [refused] = error instanceof Fault ? error.parameters : []
    if (refused === undefined) throw error
    throw new UsageError(`--${refused.detail}`)
  }
}

function print<Row extends Usage>(
  { print, report }: AdministrationContext,
  rows: readonly Row[],
  columns: readonly Column<Row>[],
  asJson: boolean,
): void {
  if (asJson) for (const row of rows) print(jsonLine(row))
  else if (rows.length === 0) report('There is no usage.')
  else for (const line of table(columns, rows, { header: process.stdout.isTTY })) print(line)
}

const dayColumn = { header: 'DAY', cell: ({ day }: Usage) => day }
const bucketColumn = {
  header: 'BUCKET',
  cell: ({ bucket, deleted_at: deleted }: BucketUsage) => (deleted === null ? bucket : `${bucket} (deleted)`),
}

const counts: readonly Column<Usage>[] = [
  { header: 'ITEMS', cell: ({ items }) => `${items}`, alignRight: true },
  { header: 'SIZE', cell: ({ bytes }) => formatSize(bytes), alignRight: true },
  { header: 'ADDED', cell: ({ added }) => formatSize(added.bytes), alignRight: true },
  { header: 'REMOVED', cell: ({ removed }) => formatSize(removed.bytes), alignRight: true },
  { header: 'DOWNLOADED', cell: ({ downloaded_bytes: bytes }) => formatSize(bytes), alignRight: true },
  {
    header: 'REQUESTS',
    cell: ({ requests: { list, download, upload, other } }) => `${list + download + upload + other}`,
    alignRight: true,
  },
]
