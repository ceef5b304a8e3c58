import type { Board } from './board.ts'
import type { LaneOptions } from './lane-options.ts'
import type { Outcomes } from './outcomes.ts'
import type { FileReader } from './read-file.ts'
import type { UploadEntry } from './upload-entry.ts'

/** What the lane sends at this moment. */
export interface LaneRequest {
  readonly entries: readonly UploadEntry[]
  /** Stops it, unless all of it was sent; what was not stored is sent again. */
  readonly stop: () => void
  readonly cancel: () => void
  /** Milliseconds since 1970. */
  movedAt: number
}

/** What the senders share. */
export interface LaneContext {
  readonly board: Board
  readonly reader: FileReader
  readonly outcomes: Outcomes
  readonly options: LaneOptions
  /** Resolves once nothing is held: false when the lane was closed. */
  ready(): Promise<boolean>
  begin(request: LaneRequest): void
}
