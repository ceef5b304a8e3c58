import { type Bar, measuresOf, reportTables } from './bars.ts'
import type { Row } from './rounds.ts'

/** The figures and their required values, as Markdown. */
export function reportWorkers(rows: readonly Row[]): string {
  const of = measuresOf(rows)
  const gain = (id: string) => of(`${id}, 2 workers`).perSecond / of(`${id}, 1 worker`).perSecond
  const found = gain('listing') / gain('nginx')
  const bars: Bar[] = [
    {
      name: 'listing: gain by a second worker, against that of nginx',
      must: '≥ 0.8 ×',
      aim: '1 ×',
      found: `${found.toFixed(2)} × (${gain('listing').toFixed(2)} against ${gain('nginx').toFixed(2)})`,
      met: found >= 0.8,
    },
  ]
  return reportTables(bars, rows)
}
