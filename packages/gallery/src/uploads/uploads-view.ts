export type UploadState = 'waiting' | 'sending' | 'paused' | 'done' | 'failed' | 'needed'

/** One file of the list, as people see it. */
export interface UploadRow {
  readonly id: string
  /** With the folders that it was in. */
  readonly path: string
  readonly contentType: string
  /** Bytes. */
  readonly size: number
  /** Bytes. */
  readonly sent: number
  /** `needed`: the browser was closed and did not store the file, so the person must choose it again. */
  readonly state: UploadState
  /** Why it failed; empty otherwise. */
  readonly reason: string
  /** Whether it can be paused and cancelled alone: not while it is in a request with other files. */
  readonly alone: boolean
}

export interface UploadTotals {
  readonly all: number
  /** Neither done nor failed nor needed. */
  readonly left: number
  readonly done: number
  readonly failed: number
  readonly needed: number
  readonly paused: number
  /** Bytes. */
  readonly sentBytes: number
  readonly allBytes: number
  /** Of all files, by bytes, 0 to 1. */
  readonly share: number
}

/** What the list of uploads shows. */
export interface UploadsView {
  /** The first rows, those that need attention before those that wait. */
  readonly rows: readonly UploadRow[]
  readonly totals: UploadTotals
  /** Everything is paused. */
  readonly held: boolean
  /** Whether everything that is not done continues after the page was closed. */
  readonly kept: boolean
  /** The server does not respond, and uploads wait for it. */
  readonly waitingForServer: boolean
  /** Null until there is enough to tell. */
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
    needed: 0,
    paused: 0,
    sentBytes: 0,
    allBytes: 0,
    share: 0,
  },
  held: false,
  kept: false,
  waitingForServer: false,
  bytesPerSecond: null,
  secondsLeft: null,
}

/** Whether a file that failed may be taken when it is tried again: no emptying makes a bucket larger than it may be. */
export const canFit = (size: number, bucketLimit: number | null): boolean =>
  bucketLimit === null || size <= bucketLimit
