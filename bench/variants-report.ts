import { atMost, type Bar, measuresOf, reportTables } from './bars.ts'
import type { VariantsResults } from './variants.ts'

/** The figures and their required values, as Markdown. */
export function reportVariants({ rows }: VariantsResults): string {
  const of = measuresOf(rows)
  const [thumbs, loop] = [of('thumbs'), of('bare loop')]
  const rate = thumbs.perSecond / loop.perSecond
  const cpu = loop.cpuPerRequest / thumbs.cpuPerRequest
  const bars: Bar[] = [
    {
      name: 'thumbs that are made when asked for, against a bare sharp loop',
      must: '≥ 0.7 ×',
      aim: '',
      found: `${rate.toFixed(2)} × (by CPU ${cpu.toFixed(2)} ×)`,
      met: rate >= 0.7,
    },
    atMost(
      'p99 of a listing meanwhile, against quiet',
      of('listing while thumbs are rendered').p99 / of('listing, quiet').p99,
      4,
      '×',
      '',
    ),
  ]
  return reportTables(bars, rows)
}
