import type { Row } from './rounds.ts'
import type { Measure } from './subject.ts'

/** A figure and its required value. */
export interface Bar {
  readonly name: string
  readonly must: string
  readonly aim: string
  readonly found: string
  readonly met: boolean
}

export const atMost = (name: string, value: number, must: number, unit: string, aim: string): Bar => ({
  name,
  must: `≤ ${must} ${unit}`,
  aim,
  found: `${value.toFixed(2)} ${unit}`,
  met: value <= must,
})

/** Returns the medians of a case by its id. */
export const measuresOf =
  (rows: readonly Row[]) =>
  (id: string): Measure => {
    const row = rows.find((one) => one.id === id)
    if (!row) throw new Error(`no figures for ${id}`)
    return row.measure
  }

/** The bars, as the lines of a table in Markdown. */
export const barTable = (bars: readonly Bar[]): string[] => [
  '| Case | Must | Aim | Found | |',
  '| --- | --- | --- | --- | --- |',
  ...bars.map(
    ({ name, must, aim, found, met }) =>
      `| ${name} | ${must} | ${aim} | ${found} | ${met ? 'met' : '**missed**'} |`,
  ),
]

/** Both tables, as Markdown: the bars, and the medians of every case. */
export const reportTables = (bars: readonly Bar[], rows: readonly Row[]): string =>
  [
    ...barTable(bars),
    '',
    '| Figures | requests/s | MB/s | µs of CPU | p50 ms | p99 ms |',
    '| --- | --- | --- | --- | --- | --- |',
    ...rows.map(figures),
    '',
  ].join('\n')

const figures = ({ id, measure: { perSecond, bytesPerSecond, cpuPerRequest, p50, p99 } }: Row): string => {
  const cells = [
    id,
    perSecond.toFixed(perSecond < 10 ? 2 : 0),
    (bytesPerSecond / 1e6).toFixed(1),
    (cpuPerRequest * 1e6).toFixed(1),
    p50.toFixed(3),
    p99.toFixed(3),
  ]
  return `| ${cells.join(' | ')} |`
}
