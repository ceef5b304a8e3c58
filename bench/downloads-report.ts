import { atMost, type Bar, measuresOf, reportTables } from './bars.ts'
import type { DownloadsResults } from './downloads.ts'

/** The figures and their required values, as Markdown. The worse of the ratios by rate and by CPU counts. */
export function reportDownloads({ rows }: DownloadsResults): string {
  const of = measuresOf(rows)
  const againstNginx = (name: string, id: string, must: number, aim: string): Bar => {
    const [ours, nginx] = [of(`${id} from mediabucket`), of(`${id} from nginx`)]
    const rate = ours.perSecond / nginx.perSecond
    const cpu = nginx.cpuPerRequest / ours.cpuPerRequest
    const found = `${rate.toFixed(2)} × by rate, ${cpu.toFixed(2)} × by CPU`
    return { name, must: `≥ ${must} ×`, aim, found, met: Math.min(rate, cpu) >= must }
  }
  const bars: Bar[] = [
    againstNginx('2 kB, 30 files, against nginx', '2 kB', 0.35, '0.5 ×'),
    againstNginx('20 kB, 30 files', '20 kB', 0.4, '0.55 ×'),
    againstNginx('20 kB, at random among many', 'many', 0.15, '0.3 ×'),
    againstNginx('100 kB, 30 files', '100 kB', 0.45, '0.7 ×'),
    againstNginx('1 MB, one file', '1 MB', 0.75, '1.2 ×'),
    againstNginx('stored thumbnails, at random', 'thumbnails', 0.35, '0.5 ×'),
    atMost(
      'p99 of a listing during 16 cold downloads from a disk with 20 ms per call, against quiet',
      of('listing during cold downloads').p99 / of('listing, quiet').p99,
      3,
      '×',
      '',
    ),
  ]
  return reportTables(bars, rows)
}
