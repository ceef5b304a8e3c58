import type { UploadEntry } from '../upload-entry.ts'
import { createFileReader } from './file-reader.ts'
import { maxFormFileSize, nextForm } from './form.ts'
import { createOutcomes } from './outcomes.ts'
import type { CurrentRequest, SendContext } from './send-context.ts'
import { sendLargeFile } from './send-large-file.ts'
import type { SendOptions } from './send-options.ts'
import { sendSmallFiles } from './send-small-files.ts'
import { createServerWait } from './server-wait.ts'
import { createTerminateUpload } from './terminate-upload.ts'
import type { UploadList } from './upload-list.ts'

/**
 * Sends files one request after another, in the order in which they wait, so that the listing has that order. Small
 * files share a form, which makes up for there being one request at a time; larger ones are resumable uploads.
 */
export interface SendQueue {
  /** Sends what waits, if nothing is being sent. */
  run(): void
  /** Holds everything, until `release`. */
  hold(): void
  release(): void
  readonly held: boolean
  readonly waitingForServer: boolean
  /** Stops the request of this entry, if it is sent alone; its new state says what becomes of it. */
  stop(entry: UploadEntry): void
  isSentAlone(entry: UploadEntry): boolean
  /** Ends the request that is under way, whatever it carries. */
  cancel(): void
  /** The service responds again. */
  serverBack(): void
  close(): void
}

/** A request that has not moved for so long when the service comes back is a lost one. Milliseconds. */
const stale = 2000

export function createSendQueue(list: UploadList, options: SendOptions): SendQueue {
  const server = createServerWait()
  const terminateUpload = createTerminateUpload(options)
  const reader = createFileReader(list, dropResumable)
  const outcomes = createOutcomes(list, server, options)
  let [running, held, closed] = [false, false, false]
  let current: CurrentRequest | null = null
  let released = () => {}

  const context: SendContext = {
    list,
    reader,
    outcomes,
    options,
    async ready() {
      while (held && !closed) {
        await new Promise<void>((resolve) => {
          released = resolve
        })
      }
      return !closed
    },
    begin(request) {
      current = request
    },
  }

  /** The service has a part of the former content, which no request continues. */
  function dropResumable(entry: UploadEntry): void {
    if (entry.uploadUrl === null) return
    terminateUpload(entry.uploadUrl)
    entry.uploadUrl = null
    options.onSending([entry])
  }

  async function send(): Promise<void> {
    if (running || closed) return
    running = true
    outcomes.forgetFullBucket()
    try {
      while (await context.ready()) {
        const [first] = list.in('waiting')
        if (first === undefined) return
        const entries = first.size > maxFormFileSize ? [first] : nextForm(list.in('waiting'))
        for (const entry of entries) list.move(entry, 'sending')
        options.onChange()
        if (first.size > maxFormFileSize) {
          await sendLargeFile(context, first)
        } else {
          const files = await reader.read(entries)
          // The disk and the network work at the same time.
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
    hold() {
      held = true
      current?.stop()
    },
    release() {
      held = false
      released()
      run()
    },
    get held() {
      return held
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
    isSentAlone: (entry) => entry.size > maxFormFileSize || entry.state !== 'sending',
    serverBack() {
      if (server.waiting) server.end()
      else if (current && Date.now() - current.movedAt > stale) current.stop()
    },
    close() {
      closed = true
      current?.stop()
      server.end()
      released()
    },
  }
}
