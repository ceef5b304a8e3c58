import { atMost, type Bar, measuresOf, reportTables } from './bars.ts'
import type { VariantsResults } from './variants.ts'

/** The figures and their required values, as Markdown. */
export function reportVariants({ rows, folder }: VariantsResults): string {
  const of = measuresOf(rows)
  const [thumbs, loop, first] = [of('thumbs'), of('bare loop'), of('first thumb after an upload')]
  const rate = thumbs.perSecond / loop.perSecond
  const cpu = loop.cpuPerRequest / thumbs.cpuPerRequest
  const bars: Bar[] = [
    {
      name: `thumbs of a folder of ${folder} pictures, made when asked for, against a bare sharp loop`,
      must: '≥ 0.7 ×',
      aim: '',
      found: `${rate.toFixed(2)} × (by CPU ${cpu.toFixed(2)} ×)`,
      met: rate >= 0.7,
    },
    atMost('first thumb after an upload, p50', first.p50, 500, 'ms', ''),
    atMost('the same, p99', first.p99, 1000, 'ms', ''),
    atMost(
      'p99 of a listing while thumbnails are rendered, against a quiet service',
      of('listing while thumbs are rendered').p99 / of('listing, quiet').p99,
      4,
      '×',
      '',
    ),
  ]
  return reportTables(bars, rows)
}
