import { atMost, type Bar, measuresOf, reportTables } from './bars.ts'
import type { S3Results } from './s3.ts'

/** The figures and their required values, as Markdown. */
export function reportS3({ rows, rssGrowth }: S3Results): string {
  const of = measuresOf(rows)
  const ratio = (name: string, one: string, other: string): Bar => {
    const found = of(one).perSecond / of(other).perSecond
    const rates = [one, other].map((id) => (of(id).bytesPerSecond / 1e6).toFixed(0))
    return {
      name,
      must: '≥ 0.7 ×',
      aim: '0.95 ×',
      found: `${found.toFixed(2)} × (${rates.join(' against ')} MB/s)`,
      met: found >= 0.7,
    }
  }
  return reportTables(
    [
      ratio(
        "100 MB to S3, against the SDK's Upload",
        'upload to the service',
        "upload with the SDK's Upload",
      ),
      atMost('100 MB to S3: resident memory gained', rssGrowth / 1e6, 120, 'MB', ''),
      ratio(
        "100 MB from S3, against the SDK's GetObject",
        'download from the service',
        "download with the SDK's GetObject",
      ),
    ],
    rows,
  )
}
