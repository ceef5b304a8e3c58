import { type Bar, measuresOf, reportTables } from './bars.ts'
import type { GalleryResults } from './gallery.ts'

/** The figures and their required values, as Markdown. */
export function reportGallery({ rows, files }: GalleryResults): string {
  const of = measuresOf(rows)
  const [gallery, command] = [of('gallery').perSecond, of('command line').perSecond]
  const bars: Bar[] = [
    {
      name: `${files} files of 1 kB chosen in the gallery`,
      must: '≥ 150 files/s',
      aim: '',
      found: `${gallery.toFixed(0)} files/s`,
      met: gallery >= 150,
    },
    {
      name: 'the same, against `mediabucket upload`',
      must: '≥ 0.5 ×',
      aim: '1 ×',
      found: `${(gallery / command).toFixed(2)} ×`,
      met: gallery / command >= 0.5,
    },
  ]
  return reportTables(bars, rows)
}
