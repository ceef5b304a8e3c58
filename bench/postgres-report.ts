import { type Bar, measuresOf, reportTables } from './bars.ts'
import type { Row } from './rounds.ts'

/** The figures and their required values, as Markdown. */
export function reportPostgres(rows: readonly Row[]): string {
  const of = measuresOf(rows)
  const ratio = (name: string, one: string, other: string, must: number, aim: string): Bar => {
    const [first, second] = [of(one).perSecond, of(other).perSecond]
    const found = first / second
    return {
      name,
      must: `≥ ${must} ×`,
      aim,
      found: `${found.toFixed(2)} × (${first.toFixed(0)} against ${second.toFixed(second < 10 ? 2 : 0)})`,
      met: found >= must,
    }
  }
  const cold = (engine: string) => `cold page at 90 % depth, ${engine}, 32 connections`
  return reportTables(
    [
      ratio(
        'hot listing, PostgreSQL against SQLite',
        'hot page, PostgreSQL',
        'hot page, SQLite',
        0.4,
        '0.7 ×',
      ),
      ratio(
        'cold listing at 90 % depth, PostgreSQL against SQLite',
        cold('PostgreSQL'),
        cold('SQLite'),
        0.3,
        '0.6 ×',
      ),
      ratio(
        'cold listing at 90 % depth, against COUNT(*) and OFFSET',
        cold('PostgreSQL'),
        'COUNT(*) and OFFSET at 90 % depth',
        100,
        '1,000 ×',
      ),
      ratio(
        '10 kB uploads, against transactions of 32',
        '10 kB uploads, PostgreSQL',
        '10 kB in the loop of transactions of 32',
        0.5,
        '0.9 ×',
      ),
    ],
    rows,
  )
}
