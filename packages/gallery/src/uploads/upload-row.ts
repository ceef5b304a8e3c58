/** One file on its way, as people see it. */
export interface UploadRow {
  readonly id: string
  readonly name: string
  readonly contentType: string
  /** Bytes. */
  readonly size: number
  /** Bytes. */
  readonly sent: number
  /** `needed`: the browser was closed and did not keep the file, so it must be chosen again. */
  readonly state: 'waiting' | 'sending' | 'paused' | 'done' | 'failed' | 'needed'
  /** Why it failed; empty otherwise. */
  readonly reason: string
}

export interface UploadTotals {
  readonly left: number
  readonly done: number
  readonly failed: number
  readonly needed: number
  readonly paused: number
  /** Of all bytes, 0 to 1. */
  readonly share: number
}

export function totalsOf(rows: readonly UploadRow[]): UploadTotals {
  const inState = (...states: UploadRow['state'][]) => rows.filter((row) => states.includes(row.state)).length
  // An empty file counts as one byte, so that it can be seen to be done.
  const weight = (row: UploadRow) => Math.max(row.size, 1)
  const size = rows.reduce((sum, row) => sum + weight(row), 0)
  const sent = rows.reduce((sum, row) => sum + (row.state === 'done' ? weight(row) : row.sent), 0)
  return {
    left: inState('waiting', 'sending', 'paused'),
    done: inState('done'),
    failed: inState('failed'),
    needed: inState('needed'),
    paused: inState('paused'),
    share: size === 0 ? 0 : Math.min(1, sent / size),
  }
}

const urgency: Readonly<Record<UploadRow['state'], number>> = {
  sending: 0,
  failed: 1,
  needed: 1,
  paused: 2,
  waiting: 3,
  done: 4,
}

/** Whether a file that failed may be taken when it is tried again: no emptying makes a bucket larger than it may be. */
export const mayFit = (row: UploadRow, bucketLimit: number | null): boolean =>
  bucketLimit === null || row.size <= bucketLimit

/** The first rows, what moves before what needs somebody, and what is done at the end. */
export function mostUrgent(rows: readonly UploadRow[], most: number): readonly UploadRow[] {
  return rows.toSorted((a, b) => urgency[a.state] - urgency[b.state]).slice(0, most)
}
