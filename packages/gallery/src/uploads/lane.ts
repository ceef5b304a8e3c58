import type { Board } from './board.ts'
import { createEndResumable } from './end-resumable.ts'
import { mostForForm, nextForm } from './form.ts'
import type { LaneContext, LaneRequest } from './lane-context.ts'
import type { LaneOptions } from './lane-options.ts'
import { createOutcomes } from './outcomes.ts'
import { createFileReader } from './read-file.ts'
import { sendAlone } from './send-alone.ts'
import { sendTogether } from './send-together.ts'
import { createServerWait } from './server-wait.ts'
import type { UploadEntry } from './upload-entry.ts'

/**
 * Sends files one request after another, in the order in which they wait, so that the listing has that order. Small
 * files share a form, which makes up for there being one request at a time; larger ones are resumable uploads.
 */
export interface Lane {
  /** Sends what waits, if nothing is being sent. */
  run(): void
  /** Holds everything, until `release`. */
  hold(): void
  release(): void
  readonly held: boolean
  readonly waitingForServer: boolean
  /** Stops the request of this entry, if it is sent alone; its new state says what becomes of it. */
  stop(entry: UploadEntry): void
  isAlone(entry: UploadEntry): boolean
  /** Ends the request that is under way, whatever it carries. */
  cancel(): void
  /** The service responds again. */
  serverBack(): void
  close(): void
}

/** A request that has not moved for so long when the service comes back is a lost one. Milliseconds. */
const stale = 2000

export function createLane(board: Board, options: LaneOptions): Lane {
  const server = createServerWait()
  const endResumable = createEndResumable(options)
  const reader = createFileReader(board, dropResumable)
  const outcomes = createOutcomes(board, server, options)
  let [running, held, closed] = [false, false, false]
  let current: LaneRequest | null = null
  let released = () => {}

  const context: LaneContext = {
    board,
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
    endResumable(entry.uploadUrl)
    entry.uploadUrl = null
    options.onSending([entry])
  }

  async function send(): Promise<void> {
    if (running || closed) return
    running = true
    outcomes.forgetFull()
    try {
      while (await context.ready()) {
        const [first] = board.in('waiting')
        if (first === undefined) return
        const entries = first.size > mostForForm ? [first] : nextForm(board.in('waiting'))
        for (const entry of entries) board.move(entry, 'sending')
        options.onChange()
        if (first.size > mostForForm) {
          await sendAlone(context, first)
        } else {
          const files = await reader.read(entries)
          // The disk and the network work at the same time.
          reader.prefetch(nextForm(board.in('waiting')))
          await sendTogether(context, files)
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
        server.cutShort()
      }
    },
    cancel() {
      current?.cancel()
      server.cutShort()
    },
    isAlone: (entry) => entry.size > mostForForm || entry.state !== 'sending',
    serverBack() {
      if (server.waiting) server.cutShort()
      else if (current && Date.now() - current.movedAt > stale) current.stop()
    },
    close() {
      closed = true
      current?.stop()
      server.cutShort()
      released()
    },
  }
}
