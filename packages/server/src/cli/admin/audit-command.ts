import { connectService, withService } from '@mediabucket/cli/client-command'
import { readClientSettings } from '@mediabucket/cli/client-settings'
import { parse, UsageError } from '@mediabucket/cli/command'
import { itemReference, notAnItem } from '@mediabucket/cli/item-references'
import {
  formatSize,
  jsonLine,
  type Output,
  printableText,
  standardOutput,
  textWidth,
} from '@mediabucket/cli/terminal'
import type { AuditEvent, EventOptions } from '@mediabucket/client'
import { LogReader, type NamedEvent, type NamedFilter } from '../../audit/audit-operations.ts'
import { Fault } from '../../core/faults.ts'
import { isItemId } from '../../core/ids.ts'
import { parseDuration, parseTimestamp } from '../../core/times.ts'
import type { Actor } from '../../core/token-rules.ts'
import type { Config } from '../../service/config.ts'
import { auditActions, isActorKind, isAuditAction } from '../../storage/catalog/audit/audit-events.ts'
import { type EventFilter, readEvents } from '../../storage/catalog/audit/audit-log.ts'
import { toOcsf } from '../../storage/catalog/audit/ocsf.ts'
import { openAuditLog } from '../../storage/engines.ts'
import { administrationCommand, isRemote } from './administration.ts'
import { requireData, unknownBucket } from './open-catalog.ts'

export const audit = administrationCommand({
  help: `Usage: mediabucket audit [OPTIONS]

Prints the events of the audit log, earliest first. The log is recorded with MEDIABUCKET_AUDIT. Works while the service is running.

Options:
  --since TIME     Events from this time on: 2026-01-31, 2026-01-31T08:00:00Z, or a duration before now such as 12h.
  --until TIME     Events before this time.
  --bucket NAME    Events of this bucket, also if it was deleted.
  --item ID|URL    Events of this item.
  --token ID       Events of requests with this token (tok_…).
  --action ACTION  One of: ${Object.keys(auditActions).join(', ')}.
  --follow         Go on with events as they are recorded, until the time of --until. Without --since, begin with the next one.
  --json           Print one JSON object per line, in the fields of OCSF.
  --csv            Print comma-separated values, with a header.`,

  async run(args, context) {
    const { values } = parse('audit', {
      args: [...args],
      options: {
        since: { type: 'string' },
        until: { type: 'string' },
        bucket: { type: 'string' },
        item: { type: 'string' },
        token: { type: 'string' },
        action: { type: 'string' },
        follow: { type: 'boolean', default: false },
        json: { type: 'boolean', default: false },
        csv: { type: 'boolean', default: false },
      },
    })
    if (values.json && values.csv) throw new UsageError('audit takes --json or --csv, not both')
    const { follow: follows } = values
    const now = Date.now()
    const since = values.since === undefined ? null : readTime('--since', values.since, now)
    const filter: NamedFilter = {
      since: since ?? (follows ? now : null),
      until: values.until === undefined ? null : readTime('--until', values.until, now),
      bucket: values.bucket ?? null,
      target: values.item === undefined ? null : readItem(values.item),
      tokenId: values.token ?? null,
      action: readAction(values.action),
    }
    const output = standardOutput()
    const format = values.json ? jsonLines : values.csv ? csv(output) : table({ header: output.isTerminal })
    const show = async (events: AsyncIterable<readonly NamedEvent[]>) => {
      const count = await print(events, format, output)
      if (count === 0 && output.isTerminal)
        context.report(
          'There are no such events. The service records events with MEDIABUCKET_AUDIT=changes or all.',
        )
    }
    if (follows && output.isTerminal) context.report('Waiting for events. Ctrl-C ends the command.')
    if (!isRemote(context)) return await showLog(context.config, filter, follows, output, show)
    const settings = readClientSettings(context.connection)
    await withService(settings, null, async ({ interrupted }) => {
      const { service } = await connectService(settings, context.report, interrupted)
      const signal = AbortSignal.any([interrupted, output.closed])
      await show(batchesOf(service.events({ ...sentFilter(filter), follow: follows, signal })))
    })
  },
})

/** Shows the log of the data. */
async function showLog(
  config: Config,
  filter: NamedFilter,
  follows: boolean,
  output: Output,
  show: (events: AsyncIterable<readonly NamedEvent[]>) => Promise<void>,
): Promise<void> {
  await requireData(config)
  const reader = new LogReader(() => openAuditLog(config))
  try {
    await show(readEvents(reader, filter, follows ? output.closed : null))
  } catch (error) {
    if (error instanceof Fault && error.code === 'bucket-unknown') throw unknownBucket(filter.bucket ?? '')
    // `head` closes the output when it has enough.
    if (!output.closed.aborted) throw error
  } finally {
    await reader.close()
  }
}

const dateOf = (time: number | null): Date | undefined => (time === null ? undefined : new Date(time))

const sentFilter = ({ since, until, bucket, target, tokenId, action }: NamedFilter): EventOptions => ({
  ...{ since: dateOf(since), until: dateOf(until), bucket: bucket ?? undefined, item: target ?? undefined },
  ...{ token: tokenId ?? undefined, action: action ?? undefined },
})

/** Events of the service as those of the data. Those of actions and actors of a later version are left out. */
async function* batchesOf(events: AsyncIterable<AuditEvent>): AsyncGenerator<readonly NamedEvent[]> {
  for await (const { time, action, actor, detail, ...event } of events) {
    const { kind, token_id: tokenId, subject, address, request_id: requestId } = actor
    if (!isAuditAction(action) || !isActorKind(kind)) continue
    const by = { kind, tokenId, subject, address, requestId }
    yield [{ ...event, time: Date.parse(time), action, by, detail, bucketId: null }]
  }
}

/**
 * Formats replace control characters, except in CSV that no terminal reads. Writes the next batch only when the output has taken
 * this one, so that the memory does not grow. Returns the number of events.
 */
async function print(
  batches: AsyncIterable<readonly NamedEvent[]>,
  { header, line }: EventFormat,
  output: Output,
): Promise<number> {
  let count = 0
  if (header !== null) await output.bytes(`${header}\n`)
  for await (const events of batches) {
    await output.bytes(events.map((event) => `${line(event)}\n`).join(''))
    count += events.length
  }
  return count
}

/** Milliseconds since 1970. */
function readTime(option: string, text: string, now: number): number {
  const duration = parseDuration(text)
  if (duration !== null) return now - duration
  const time = parseTimestamp(/^\d{4}-\d\d-\d\d$/.test(text) ? `${text}T00:00:00Z` : text)
  if (time === null)
    throw new UsageError(
      `${option} takes a date, a time such as 2026-01-31T08:00:00Z, or a duration before now such as 12h, not "${text}"`,
    )
  return time
}

/** The id of an item, or that in its URL. */
function readItem(text: string): string {
  const path = URL.parse(itemReference(text))?.pathname ?? text
  const id = path.split('/').at(-1)?.split('.')[0] ?? ''
  if (isItemId(id)) return id
  throw notAnItem(text)
}

function readAction(name: string | undefined): EventFilter['action'] {
  if (name === undefined || isAuditAction(name)) return name ?? null
  throw new UsageError(`"${name}" is not an action. The actions are ${Object.keys(auditActions).join(', ')}.`)
}

/** How events are printed. */
export interface EventFormat {
  readonly header: string | null
  readonly line: (event: NamedEvent) => string
}

/** One OCSF object in each line. */
export const jsonLines: EventFormat = {
  header: null,
  line: (event) => jsonLine(toOcsf(event, event.bucket)),
}

const csvColumns: Readonly<Record<string, (event: NamedEvent) => string | number | null>> = {
  time: ({ time }) => new Date(time).toISOString(),
  action: ({ action }) => action,
  bucket: ({ bucket }) => bucket,
  target: ({ target }) => target,
  name: ({ name }) => name,
  size: ({ size }) => size,
  detail: ({ detail }) => (Object.keys(detail).length === 0 ? null : JSON.stringify(detail)),
  actor: ({ by }) => by.kind,
  token: ({ by }) => by.tokenId,
  subject: ({ by }) => by.subject,
  address: ({ by }) => by.address,
  request_id: ({ by }) => by.requestId,
}

/** RFC 4180, with LF. On a terminal, the values are printable; elsewhere they are exact. */
export const csv = ({ isTerminal }: { readonly isTerminal: boolean }): EventFormat => ({
  header: Object.keys(csvColumns).join(','),
  line: (event) =>
    Object.values(csvColumns)
      .map((column) => {
        const value = column(event)
        return csvCell(isTerminal && typeof value === 'string' ? printableText(value) : value)
      })
      .join(','),
})

/** A spreadsheet would take a cell that begins with one of these characters for a formula, also in full width. Some separate cells with `;`. */
const formula = /(^\s*|[;\t\r\n]\s*)([=+\-@\uff1d\uff0b\uff0d\uff20])/g

function csvCell(value: string | number | null): string {
  const text = `${value ?? ''}`
  const inert = typeof value === 'string' ? text.replace(formula, "$1'$2").replace(/^[\t\r]/, "'$&") : text
  return /[",\r\n]/.test(inert) ? `"${inert.replaceAll('"', '""')}"` : inert
}

const textColumns: readonly (readonly [string, number, (event: NamedEvent) => string])[] = [
  ['TIME', 20, ({ time }) => new Date(time).toISOString().replace(/\.\d+/, '')],
  ['ACTION', 14, ({ action }) => action],
  ['BUCKET', 14, ({ bucket }) => bucket ?? '-'],
  ['TARGET', 26, ({ target }) => target ?? '-'],
  ['BY', 26, ({ by }) => actorText(by)],
  ['ADDRESS', 15, ({ by }) => by.address ?? '-'],
  ['NAME', 0, nameText],
]

/** A table for people. Events are printed as they are read, so the widths of the columns are fixed. */
export const table = ({ header }: { readonly header: boolean }): EventFormat => ({
  header: header ? textColumns.map(([name, width]) => name.padEnd(width)).join('  ') : null,
  line: (event) =>
    textColumns
      .map(([, width, cell]) => {
        const text = printableText(cell(event))
        return text + ' '.repeat(Math.max(0, width - textWidth(text)))
      })
      .join('  ')
      .trimEnd(),
})

function actorText({ kind, tokenId, subject }: Actor): string {
  if (kind === 'service') return 'service'
  return kind === 'operator' ? `user ${subject}` : (subject ?? tokenId ?? '-')
}

function nameText({ name, size, detail }: NamedEvent): string {
  const facts = Object.entries(detail).map(([key, value]) => `${key}=${String(value)}`)
  return [name ?? '-', ...(size === null ? [] : [formatSize(size)]), ...facts].join(' ')
}
