import { atMost, type Bar, measuresOf, reportTables } from './bars.ts'
import { type ItemsResults, streamed, titleOf } from './items.ts'

/** The figures and their required values, as Markdown. */
export function reportItems({ rows, searches, others, streamMemory }: ItemsResults): string {
  const of = measuresOf(rows)
  const growth = (id: string) => of(titleOf(id, 'large')).p50 / of(titleOf(id, 'small')).p50
  const bars: Bar[] = [
    ...others.map((id) => atMost(`${id}: large bucket against small, p50`, growth(id), 1.5, '×', '1.0 ×')),
    ...(['small', 'PostgreSQL'] as const).flatMap((target) =>
      searches.map((id) => atMost(`${titleOf(id, target)}: p50`, of(titleOf(id, target)).p50, 50, 'ms', '')),
    ),
    atMost(
      `${streamed}: rate, small bucket against large`,
      of(titleOf(streamed, 'small')).perSecond / of(titleOf(streamed, 'large')).perSecond,
      1.5,
      '×',
      '1.0 ×',
    ),
    atMost(`${streamed}, large: resident memory gained`, streamMemory / 1e6, 60, 'MB', ''),
  ]
  return reportTables(bars, rows)
}
