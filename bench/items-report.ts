import { atMost, type Bar, measuresOf, reportTables } from './bars.ts'
import { reads } from './item-requests.ts'
import { besideSearches, type ItemsResults, quiet, streamed, titleOf } from './items.ts'

/** The figures and their required values, as Markdown. */
export function reportItems({ rows, searchTimes, others, streamMemory }: ItemsResults): string {
  const of = measuresOf(rows)
  const growth = (id: string) => of(titleOf(id, 'large')).p50 / of(titleOf(id, 'small')).p50
  const bars: Bar[] = [
    ...others.map((id) => atMost(`${id}: large bucket against small, p50`, growth(id), 1.5, '×', '1.0 ×')),
    ...(['small', 'PostgreSQL'] as const).flatMap((target) =>
      reads.flatMap(({ id, searchTime }) => {
        const title = titleOf(id, target)
        return searchTime === undefined
          ? []
          : [atMost(`${title}: p95`, searchTimes.get(title) ?? Number.NaN, searchTime, 'ms', '')]
      }),
    ),
    ...(['small', 'PostgreSQL'] as const).map((target) =>
      atMost(
        `${titleOf(besideSearches, target)}: against quiet, p99`,
        of(titleOf(besideSearches, target)).p99 / of(titleOf(quiet, target)).p99,
        1.5,
        '×',
        '',
      ),
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
