import { atMost, type Bar, measuresOf, reportTables } from './bars.ts'
import type { ListingResults } from './listing.ts'
import type { Measure } from './subject.ts'

/** The figures and their required values, as Markdown. The worse of the ratios by rate and by CPU counts. */
export function reportListing({ rows, mixed, uploads }: ListingResults): string {
  const of = measuresOf(rows)
  /** The ratio to `against`, by rate and by CPU. */
  const ratios = (id: string, against: string, by: 'perSecond' | 'bytesPerSecond' = 'perSecond') => {
    const [one, other] = [of(id), of(against)]
    const perByte = ({ cpuPerRequest, bytesPerSecond, perSecond }: Measure) =>
      (cpuPerRequest * perSecond) / bytesPerSecond
    const cpu = by === 'perSecond' ? other.cpuPerRequest / one.cpuPerRequest : perByte(other) / perByte(one)
    return [one[by] / other[by], cpu] as const
  }
  const atLeast = (name: string, [rate, cpu]: readonly [number, number], must: number, aim: string): Bar => ({
    name,
    must: `≥ ${must} ×`,
    aim,
    found: `${rate.toFixed(2)} × by rate, ${cpu.toFixed(2)} × by CPU`,
    met: Math.min(rate, cpu) >= must,
  })
  const size = (id: string) => of(id).bytesPerSecond / of(id).perSecond
  const bars: Bar[] = [
    atLeast('page 2 of 30 items, against node:http', ratios('page', 'node'), 0.6, '0.9 ×'),
    atLeast('the same, against nginx', ratios('page', 'nginx'), 0.5, '0.8 ×'),
    atLeast(
      'the same on small data, with rate limits against without',
      ratios('page-limited', 'page-unlimited'),
      0.95,
      '0.98 ×',
    ),
    atLeast('tokens at random, against one', ratios('tokens', 'page'), 0.8, '0.95 ×'),
    atLeast('If-None-Match, 304, against the 200', ratios('304', 'page'), 1, '1.2 ×'),
    atLeast('well-formed unknown token, 401, against the 200', ratios('401', 'page'), 0.7, ''),
    atMost(
      'no cache, window: large bucket against 1,000 items, p50',
      of('cold-large').p50 / of('cold-1000').p50,
      1.5,
      '×',
      '1.1 ×',
    ),
    atMost(
      'the same: 90 % depth against the first pages, p50',
      of('cold-deep').p50 / of('cold-first').p50,
      1.2,
      '×',
      '1.0 ×',
    ),
    atLeast(
      'windowed links: pages of the large bucket at random, against one page',
      ratios('windowed-random', 'windowed-hot'),
      0.4,
      '0.7 ×',
    ),
    atLeast(
      'large pages, all links, against nginx, bytes',
      ratios('large', 'nginx-large', 'bytesPerSecond'),
      0.7,
      '0.9 ×',
    ),
    atMost(
      'large and small pages at the same time: resident memory gained',
      mixed.rssGrowth / 1e6,
      60,
      'MB',
      '',
    ),
    atMost('large and small pages at the same time: event-loop delay, p99', mixed.loopDelayP99, 20, 'ms', ''),
    atMost(
      'large pages, gzip: CPU against plain',
      of('large-gzip').cpuPerRequest / of('large').cpuPerRequest,
      1,
      '×',
      '',
    ),
    atMost('large pages, gzip: size against plain', size('large-gzip') / size('large'), 0.1, '×', ''),
    atMost('one upload, large bucket against empty', uploads.large / uploads.empty, 1.3, '×', '1.1 ×'),
  ]
  return reportTables(bars, rows)
}
