import type { FileReader } from './file-reader.ts'
import type { Outcomes } from './outcomes.ts'
import type { SendOptions } from './send-options.ts'
import type { UploadEntry, UploadList } from './upload-list.ts'

/** The request in progress. */
export interface CurrentRequest {
  readonly entries: readonly UploadEntry[]
  /** Stops it unless it was sent completely; files that were not stored are sent again. */
  readonly stop: () => void
  readonly cancel: () => void
  /** The time of its last progress. Milliseconds since 1970. */
  progressAt: number
}

/** The parts of the send queue that the senders use. */
export interface SendContext {
  readonly list: UploadList
  readonly reader: FileReader
  readonly outcomes: Outcomes
  readonly options: SendOptions
  /** Resolves when the queue is not paused; with false if it was closed. */
  untilResumed(): Promise<boolean>
  begin(request: CurrentRequest): void
}
