import { createFileReader, maxFormFileSize } from './file-reader.ts'
import { createOutcomes, createServerWait, type SendOptions } from './outcomes.ts'
import {
  type CurrentRequest,
  nextForm,
  type SendContext,
  sendLargeFile,
  sendSmallFiles,
} from './send-files.ts'
import type { UploadEntry, UploadList } from './upload-list.ts'

/**
 * Sends the waiting files in order, one request at a time, so that the listing has the same order. Small files share a
 * request, which keeps this fast; larger files are resumable uploads (docs/interface.md, G11).
 */
export interface SendQueue {
  /** Starts to send the waiting files, unless it is sending already. */
  run(): void
  pause(): void
  resume(): void
  readonly paused: boolean
  readonly waitingForServer: boolean
  /** Stops the request of this entry if it carries no other. Change the entry's state first. */
  stop(entry: UploadEntry): void
  /** Whether an entry can be stopped without others: it is not in a request with other files. */
  isSeparate(entry: UploadEntry): boolean
  /** Cancels the current request. */
  cancel(): void
  /** Ends the resumable upload of an entry that will not continue. */
  endUpload(entry: UploadEntry): void
  /** The connection was restored. */
  onServerBack(): void
  close(): void
}

/** A request without progress for this long when the connection is restored is sent again. Milliseconds. */
const stalledAfter = 2000

export function createSendQueue(list: UploadList, options: SendOptions): SendQueue {
  const server = createServerWait()
  const reader = createFileReader(list, restartResumable)
  const outcomes = createOutcomes(list, server, options)
  let [running, paused, closed] = [false, false, false]
  let current: CurrentRequest | null = null
  let onResumed = () => {}

  const context: SendContext = {
    list,
    reader,
    outcomes,
    options,
    async untilResumed() {
      while (paused && !closed) {
        await new Promise<void>((resolve) => {
          onResumed = resolve
        })
      }
      return !closed
    },
    begin(request) {
      current = request
    },
  }

  /** Ends the resumable upload of a file that changed: its new content cannot continue it. */
  function restartResumable(entry: UploadEntry): void {
    if (entry.uploadId === null) return
    endUpload(entry)
    entry.uploadId = null
    options.onSending([entry])
  }

  /** Ends the resumable upload of an entry, so that its space is free at once. It expires anyway. */
  function endUpload({ uploadId }: UploadEntry): void {
    if (uploadId !== null) options.client.deleteUpload(uploadId).catch(() => undefined)
  }

  async function send(): Promise<void> {
    if (running || closed) return
    running = true
    outcomes.forgetFullBucket()
    try {
      while (await context.untilResumed()) {
        const [first] = list.in('waiting')
        if (first === undefined) return
        const entries = first.size > maxFormFileSize ? [first] : nextForm(list.in('waiting'))
        for (const entry of entries) list.move(entry, 'sending')
        options.onChange()
        if (first.size > maxFormFileSize) {
          await sendLargeFile(context, first)
        } else {
          const files = await reader.read(entries)
          // Read the next files during the request.
          reader.prefetch(nextForm(list.in('waiting')))
          await sendSmallFiles(context, files)
        }
        current = null
        options.onChange()
      }
    } finally {
      running = false
    }
  }

  const run = () => void send()
  return {
    run,
    pause() {
      paused = true
      current?.stop()
    },
    resume() {
      paused = false
      onResumed()
      run()
    },
    get paused() {
      return paused
    },
    get waitingForServer() {
      return server.waiting
    },
    stop(entry) {
      if (current?.entries.length === 1 && current.entries[0] === entry) {
        current.stop()
        server.end()
      }
    },
    cancel() {
      current?.cancel()
      server.end()
    },
    endUpload,
    isSeparate: (entry) => entry.size > maxFormFileSize || entry.state !== 'sending',
    onServerBack() {
      if (server.waiting) server.end()
      else if (current && Date.now() - current.progressAt > stalledAfter) current.stop()
    },
    close() {
      closed = true
      current?.stop()
      server.end()
      onResumed()
    },
  }
}
