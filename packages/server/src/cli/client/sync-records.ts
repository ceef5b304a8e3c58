import { appendRegular, openRegular, replaceRegular } from './guarded-files.ts'
import type { StateFiles } from './upload-state.ts'

/**
 * Which versions of the files of a directory are which items, so that the files of the next run need not be read. They are a cache: without
 * them, or after a kill, files are compared by their bytes.
 */
export interface SyncRecords {
  /** Whether the file with this path and version is the item. The version is that of a LocalFile, or empty while the item is being replaced. */
  readonly has: (path: string, version: string, id: string) => boolean
  readonly itemOf: (path: string) => string | null
  readonly set: (path: string, version: string, id: string) => Promise<void>
  readonly forget: (path: string) => void
  /** Stores what is not stored yet. */
  readonly flush: () => Promise<void>
  /** Stores the records without earlier ones. */
  readonly settle: () => Promise<void>
}

/** Records that are stored together. */
const batchSize = 100

/** A file may change again within the resolution of its time, so that its version stays the same. Milliseconds. */
const settledAge = 2_000

/** One line of JSON for each record, appended; the last line of a path counts. */
export async function openSyncRecords(files: StateFiles, sync: string): Promise<SyncRecords> {
  /** By path: the id, a space and the version, in one text to use little memory. */
  const records = new Map<string, string>()
  const recordOf = (version: string, id: string) => `${id} ${version}`
  await files.use(sync, async (path) => {
    const file = await openRegular(path, 'read').catch(() => null)
    for await (const line of file?.readLines() ?? []) {
      const [path, version, id] = readLine(line) ?? []
      if (path !== undefined && version !== undefined && id !== undefined)
        records.set(path, recordOf(version, id))
    }
  })
  let waiting: string[] = []

  async function flush(): Promise<void> {
    if (waiting.length === 0) return
    const text = waiting.join('')
    waiting = []
    await files.use(sync, (path) => appendRegular(path, text))
  }

  return {
    has: (path, version, id) => records.get(path) === recordOf(version, id),
    itemOf: (path) => records.get(path)?.split(' ', 1)[0] ?? null,
    async set(path, version, id) {
      if (version !== '' && Date.now() - modifiedAt(version) < settledAge) return
      records.set(path, recordOf(version, id))
      // The file may end with an incomplete line of a killed process.
      waiting.push(`\n${JSON.stringify([path, version, id])}`)
      if (waiting.length >= batchSize) await flush()
    },
    forget: (path) => void records.delete(path),
    flush,
    async settle() {
      waiting = []
      await files.use(sync, async (path) => {
        const lines = function* () {
          for (const [name, value] of records) {
            const end = value.indexOf(' ')
            yield `${JSON.stringify([name, value.slice(end + 1), value.slice(0, end)])}\n`
          }
        }
        await replaceRegular(path, lines())
      })
    },
  }
}

/** The modification time in a version (LocalFile). Milliseconds since 1970. */
const modifiedAt = (version: string): number => Number(version.split(' ')[1]) / 1e6

function readLine(line: string): readonly string[] | null {
  try {
    const value: unknown = JSON.parse(line)
    return Array.isArray(value) && value.every((text) => typeof text === 'string') ? value : null
  } catch {
    return null
  }
}
