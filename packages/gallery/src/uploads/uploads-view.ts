/** `unavailable`: the browser was closed and did not store the file, so the person must choose it again. */
export type UploadState = 'waiting' | 'sending' | 'paused' | 'done' | 'failed' | 'unavailable'

/** One file in the list of uploads. */
export interface UploadRow {
  readonly id: string
  /** With the folders that contained it. */
  readonly path: string
  readonly contentType: string
  /** Bytes. */
  readonly size: number
  /** Bytes. */
  readonly sent: number
  readonly state: UploadState
  /** Why it failed; empty otherwise. */
  readonly reason: string
  /** Whether a retry would fail too: the limits of the token do not allow the file. */
  readonly isFinal: boolean
  /** Whether it can be paused and cancelled: not while it is in a request with other files. */
  readonly isSeparate: boolean
}

export interface UploadTotals {
  readonly all: number
  /** Waiting, sending or paused. */
  readonly left: number
  readonly done: number
  readonly failed: number
  readonly unavailable: number
  readonly paused: number
  /** Bytes. */
  readonly sentBytes: number
  readonly allBytes: number
  /** Progress of all files by bytes, 0 to 1. */
  readonly share: number
}

/** The state of the list of uploads. */
export interface UploadsView {
  /** The first rows; files that need attention come before files that wait. */
  readonly rows: readonly UploadRow[]
  readonly totals: UploadTotals
  /** Whether the browser stores all unfinished uploads, so that they continue after the page is closed. */
  readonly allSaved: boolean
  /** Whether the server does not respond and uploads wait for it. */
  readonly waitingForServer: boolean
  /** Null until it can be estimated. */
  readonly bytesPerSecond: number | null
  readonly secondsLeft: number | null
}

export const emptyView: UploadsView = {
  rows: [],
  totals: {
    all: 0,
    left: 0,
    done: 0,
    failed: 0,
    unavailable: 0,
    paused: 0,
    sentBytes: 0,
    allBytes: 0,
    share: 0,
  },
  allSaved: false,
  waitingForServer: false,
  bytesPerSecond: null,
  secondsLeft: null,
}

/** Whether a failed file can succeed on a retry: not if it is larger than the bucket's limit. */
export const canFit = (size: number, bucketLimit: number | null): boolean =>
  bucketLimit === null || size <= bucketLimit
