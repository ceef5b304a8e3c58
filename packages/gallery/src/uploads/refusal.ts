import { formatSize } from '../format/size.ts'
import { strings } from '../strings.ts'
import { problemDetail } from './problem-detail.ts'

/** Why the server did not take a file, in its own words; of a file that is too large, with the limit where it is told. */
export function refusal(status: number, body: string): string {
  const detail = problemDetail(body)
  if (status !== 413) return detail ?? strings.uploads.unknown
  const limit = /(\d+) bytes/.exec(detail ?? '')?.[1]
  return limit === undefined
    ? strings.uploads.tooLarge
    : strings.uploads.tooLargeFor(formatSize(Number(limit)))
}
