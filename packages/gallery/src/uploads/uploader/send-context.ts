import type { UploadEntry } from '../upload-entry.ts'
import type { FileReader } from './file-reader.ts'
import type { Outcomes } from './outcomes.ts'
import type { SendOptions } from './send-options.ts'
import type { UploadList } from './upload-list.ts'

/** What the lane sends at this moment. */
export interface CurrentRequest {
  readonly entries: readonly UploadEntry[]
  /** Stops it, unless all of it was sent; what was not stored is sent again. */
  readonly stop: () => void
  readonly cancel: () => void
  /** Milliseconds since 1970. */
  movedAt: number
}

/** What the senders share. */
export interface SendContext {
  readonly list: UploadList
  readonly reader: FileReader
  readonly outcomes: Outcomes
  readonly options: SendOptions
  /** Resolves once nothing is held: false when the lane was closed. */
  ready(): Promise<boolean>
  begin(request: CurrentRequest): void
}
