import type { UploadId } from '../../core/upload-id.ts'

/** What the work of one turn is given. */
export interface Turn {
  /** Aborted when a later request takes over: the work stops where it is. */
  readonly signal: AbortSignal
  /** The source, watched: `settle` interrupts a turn that waits for a chunk for too long. */
  readonly watch: (source: AsyncIterable<Uint8Array>) => AsyncIterable<Uint8Array>
}

/** One request at a time for each upload: chunks of two requests never mix. */
export interface UploadTurns {
  /**
   * Runs `work` after the request before it. That one has most likely lost its connection, so after the grace its signal
   * is aborted.
   */
  take<T>(id: UploadId, work: (turn: Turn) => Promise<T>): Promise<T>

  /**
   * Waits for the present request, for the grace at most where bytes still arrive: it goes on then. One that has waited
   * for bytes as long as that is interrupted.
   */
  settle(id: UploadId): Promise<void>

  isTaken(id: UploadId): boolean
  /** Resolves when no upload has a request. */
  settled(): Promise<void>
}

interface Entry {
  readonly over: Promise<void>
  readonly stop: AbortController
  /** Since when the work waits for a chunk, by performance.now(); null while it does not wait. */
  waitingSince: number | null
}

/** Milliseconds. */
const defaultGrace = 1_000

export function createUploadTurns({ grace = defaultGrace } = {}): UploadTurns {
  /** The last in line for each upload. */
  const turns = new Map<UploadId, Entry>()

  async function* watched(entry: Entry, source: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
    try {
      entry.waitingSince = performance.now()
      for await (const chunk of source) {
        entry.waitingSince = null
        yield chunk
        entry.waitingSince = performance.now()
      }
    } finally {
      entry.waitingSince = null
    }
  }

  const isStalled = ({ waitingSince }: Entry): boolean =>
    waitingSince !== null && performance.now() - waitingSince >= grace

  /** False when the turn is not over after the grace. */
  async function isOver({ over }: Entry): Promise<boolean> {
    let timer: NodeJS.Timeout | undefined
    const late = new Promise<boolean>((resolve) => {
      timer = setTimeout(() => resolve(false), grace)
    })
    const result = await Promise.race([over.then(() => true), late])
    clearTimeout(timer)
    return result
  }

  return {
    async take(id, work) {
      const before = turns.get(id)
      const { promise: over, resolve: end } = Promise.withResolvers<void>()
      const entry: Entry = { over, stop: new AbortController(), waitingSince: null }
      turns.set(id, entry)
      try {
        if (before && !(await isOver(before))) {
          before.stop.abort()
          await before.over
        }
        return await work({
          signal: entry.stop.signal,
          watch: (source) => watched(entry, source),
        })
      } finally {
        if (turns.get(id) === entry) turns.delete(id)
        end()
      }
    },

    async settle(id) {
      const present = turns.get(id)
      if (!present || (await isOver(present)) || !isStalled(present)) return
      present.stop.abort()
      await present.over
    },

    isTaken: (id) => turns.has(id),

    async settled() {
      while (turns.size > 0) await Promise.all([...turns.values()].map(({ over }) => over))
    },
  }
}
