import type { UploadId } from '../core/upload-id.ts'

/** One at a time for each upload: pieces of two requests never mix. */
export interface UploadTurns {
  /**
   * Runs `work` when whoever is at the upload is done. Who waits has most likely lost the connection of the one before:
   * after a moment that one's signal asks it to stop where it is.
   */
  take<T>(id: UploadId, work: (signal: AbortSignal) => Promise<T>): Promise<T>
  isTaken(id: UploadId): boolean
  /** Resolves when nobody is at any upload. */
  settled(): Promise<void>
}

interface Turn {
  readonly over: Promise<void>
  readonly stop: AbortController
}

/** For how long the one before may go on. Milliseconds. */
const grace = 1_000

export function createUploadTurns(): UploadTurns {
  /** The last in line for each upload. */
  const turns = new Map<UploadId, Turn>()

  return {
    async take(id, work) {
      const before = turns.get(id)
      const { promise: over, resolve: end } = Promise.withResolvers<void>()
      const turn: Turn = { over, stop: new AbortController() }
      turns.set(id, turn)
      try {
        if (before) {
          const timer = setTimeout(() => before.stop.abort(), grace)
          await before.over
          clearTimeout(timer)
        }
        return await work(turn.stop.signal)
      } finally {
        if (turns.get(id) === turn) turns.delete(id)
        end()
      }
    },

    isTaken: (id) => turns.has(id),

    async settled() {
      while (turns.size > 0) await Promise.all([...turns.values()].map(({ over }) => over))
    },
  }
}
