import { atMost, type Bar, measuresOf, reportTables } from './bars.ts'
import type { UploadsResults } from './uploads.ts'

/** The figures and their required values, as Markdown. */
export function reportUploads({ rows, rssGrowth, open }: UploadsResults): string {
  const of = measuresOf(rows)
  const atLeast = (name: string, id: string, against: string, must: number, aim: string): Bar => {
    const [one, other] = [of(id), of(against)]
    const rate = one.perSecond / other.perSecond
    const cpu = other.cpuPerRequest / one.cpuPerRequest
    const found = `${rate.toFixed(2)} × (by CPU ${cpu.toFixed(2)} ×)`
    return { name, must: `≥ ${must} ×`, aim, found, met: rate >= must }
  }
  const download = (size: string, must: number, aim: string) =>
    atLeast(
      `download of ${size}, against a bare file stream`,
      `${size} from mediabucket`,
      `${size} from file stream`,
      must,
      aim,
    )
  const bars: Bar[] = [
    atLeast(
      'durable uploads of 10 kB, 32 connections, against the bare loop of files',
      '10 kB uploads',
      '10 kB in the loop',
      1.3,
      '2.5 ×',
    ),
    atLeast('the same with 2 kB', '2 kB uploads', '2 kB in the loop', 2, '4 ×'),
    atLeast(
      'files of 2 kB in forms of 100, against single uploads',
      '2 kB, 100 files in a form',
      '2 kB uploads',
      3,
      '6 ×',
    ),
    atLeast('1 GB raw, against the bare receiver', 'raw', 'receiver', 0.7, '0.9 ×'),
    atLeast('1 GB by multipart', 'multipart', 'receiver', 0.6, '0.8 ×'),
    atLeast('1 GB by tus in 8 MB chunks', 'tus', 'receiver', 0.6, '0.8 ×'),
    atMost('1 GB raw: resident memory gained', rssGrowth.raw / 1e6, 80, 'MB', ''),
    atMost('1 GB by multipart: resident memory gained', rssGrowth.multipart / 1e6, 80, 'MB', ''),
    atMost('1 GB by tus: resident memory gained', rssGrowth.tus / 1e6, 80, 'MB', ''),
    download('20 kB', 0.7, '1 ×'),
    download('100 MB', 0.7, '1 ×'),
    {
      name: 'uploads of 100 kB open at once',
      must: `all of ${open.opened}`,
      aim: '',
      found: `${open.stored} stored`,
      met: open.stored === open.opened,
    },
    atMost('the same: resident memory at the most', open.peakRss / 1e6, 600, 'MB', ''),
    atMost(
      'p99 of a listing during uploads of 10 kB files on 8 connections, against quiet',
      of('listing during uploads').p99 / of('listing, quiet').p99,
      3,
      '×',
      '1.5 ×',
    ),
  ]
  return reportTables(bars, rows)
}
