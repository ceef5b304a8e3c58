import type { RecordedEvent } from '../catalog/audit-log/audit-log.ts'
import { toOcsf } from '../catalog/audit-log/ocsf.ts'
import type { Actor } from '../core/actor.ts'
import { formatSize, jsonLine, printableText, textWidth } from './client/terminal-text.ts'

/** How events are printed. `bucket` is the name of the bucket of an event. */
export interface EventFormat {
  readonly header: string | null
  readonly line: (event: RecordedEvent, bucket: string | null) => string
}

/** One OCSF object in each line. */
export const jsonLines: EventFormat = {
  header: null,
  line: (event, bucket) => jsonLine(toOcsf(event, bucket)),
}

const csvColumns: Readonly<
  Record<string, (event: RecordedEvent, bucket: string | null) => string | number | null>
> = {
  time: ({ time }) => new Date(time).toISOString(),
  action: ({ action }) => action,
  bucket: (_, bucket) => bucket,
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
  line: (event, bucket) =>
    Object.values(csvColumns)
      .map((column) => {
        const value = column(event, bucket)
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

const textColumns: readonly (readonly [
  string,
  number,
  (event: RecordedEvent, bucket: string | null) => string,
])[] = [
  ['TIME', 20, ({ time }) => new Date(time).toISOString().replace(/\.\d+/, '')],
  ['ACTION', 14, ({ action }) => action],
  ['BUCKET', 14, (_, bucket) => bucket ?? '-'],
  ['TARGET', 26, ({ target }) => target ?? '-'],
  ['BY', 26, ({ by }) => actorText(by)],
  ['ADDRESS', 15, ({ by }) => by.address ?? '-'],
  ['NAME', 0, nameText],
]

/** A table for people. Events are printed as they are read, so the widths of the columns are fixed. */
export const table = ({ header }: { readonly header: boolean }): EventFormat => ({
  header: header ? textColumns.map(([name, width]) => name.padEnd(width)).join('  ') : null,
  line: (event, bucket) =>
    textColumns
      .map(([, width, cell]) => {
        const text = printableText(cell(event, bucket))
        return text + ' '.repeat(Math.max(0, width - textWidth(text)))
      })
      .join('  ')
      .trimEnd(),
})

function actorText({ kind, tokenId, subject }: Actor): string {
  if (kind === 'service') return 'service'
  return kind === 'operator' ? `user ${subject}` : (subject ?? tokenId ?? '-')
}

function nameText({ name, size, detail }: RecordedEvent): string {
  const facts = Object.entries(detail).map(([key, value]) => `${key}=${String(value)}`)
  return [name ?? '-', ...(size === null ? [] : [formatSize(size)]), ...facts].join(' ')
}
