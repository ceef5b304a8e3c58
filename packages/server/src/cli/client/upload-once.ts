import { createHash, randomUUID } from 'node:crypto'
import type { Client, Media, ProblemError, ResumeStore, UploadOptions } from '@mediabucket/client'
import type { DiskFile } from './disk-file.ts'

/** What a repeated run hears of a file that it need not store again, or cannot under the same key. */
const outdated = new Set<unknown>(['media-unknown', 'idempotency-key-reused'])

/**
 * Uploads files in one request each, so that a command that is run again after it was cut short stores each once: the
 * keys, by which the service knows a repeat (docs/interface.md I2), follow from the file and from what is kept under
 * `command` from the first run on.
 */
export function uploadOnce(parts: {
  readonly client: Client
  readonly states: ResumeStore
  readonly command: string
}) {
  const { client, states, command } = parts
  let run: Promise<{ readonly id: string; readonly isRepeated: boolean }> | undefined
  const times = new Map<string, number>()

  async function begin() {
    const kept = await states.get(command)
    const id = kept ?? randomUUID()
    if (!kept) await states.set(command, id)
    return { id, isRepeated: Boolean(kept) }
  }

  return {
    /** `fingerprint` changes with the file. One that is given twice in a run is stored twice. */
    async upload(source: DiskFile, fingerprint: string, options: UploadOptions): Promise<Media> {
      const nth = times.get(fingerprint) ?? 0
      times.set(fingerprint, nth + 1)
      run ??= begin()
      const { id, isRepeated } = await run
      for (let round = 0; ; round += 1) {
        const told = JSON.stringify([id, fingerprint, nth, round])
        const idempotencyKey = createHash('sha256').update(told).digest('hex')
        try {
          const media = await client.upload(source, { ...options, idempotencyKey })
          // What an earlier run stored may have been deleted since; whoever sends it again wants it there.
          if (isRepeated) await client.describe(media.id, options)
          return media
        } catch (error) {
          if (!isRepeated || !isProblem(error) || !outdated.has(error.problem.code)) throw error
        }
      }
    },

    /** The run has come to its end, and is no more to be repeated. */
    async end(): Promise<void> {
      if (run) await states.remove(command)
    },
  }
}

/** Errors are known by their names, so that the client need not be loaded for it. */
const isProblem = (error: unknown): error is ProblemError =>
  error instanceof Error && error.name === 'ProblemError'
