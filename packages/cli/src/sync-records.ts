import { appendRegular, openRegular, replaceRegular } from './guarded-files.ts'
import type { StateFiles } from './upload-state.ts'

/** What a run knew of a path: both sides had it. */
interface SyncRecord {
  readonly id: string
  /** That of the LocalFile; empty if it is not known, and while the item is being replaced. */
  readonly stamp: string
  /** Of the file; empty if it is not known. */
  readonly sha256: string
}

/**
 * Which files of a directory are which items. Files whose stamp is known need not be read, and `--delete` deletes only what an earlier run knew.
 * Without them, files are compared by their bytes, and nothing is deleted.
 */
export interface SyncRecords {
  /** Whether the file with this path and stamp is the item. */
  readonly has: (path: string, stamp: string, id: string) => boolean
  readonly find: (path: string) => SyncRecord | null
  /** How many paths are known. */
  readonly count: () => number
  readonly set: (path: string, record: SyncRecord) => Promise<void>
  readonly forget: (path: string) => void
  /** Stores what is not stored yet. */
  readonly flush: () => Promise<void>
  /** Stores the records without earlier ones. */
  readonly compact: () => Promise<void>
}

/** Records that are stored together. */
const batchSize = 100

/** A file may change again within the resolution of its time, so that its stamp stays the same. Milliseconds. */
const stableAge = 2_000

/** One line of JSON for each record, appended; the last line of a path counts. */
export async function openSyncRecords(files: StateFiles, sync: string): Promise<SyncRecords> {
  /** In one text for each path, to use little memory. */
  const records = new Map<string, string>()
  const textOf = ({ id, stamp, sha256 }: SyncRecord) => `${id} ${sha256} ${stamp}`
  await files.use(sync, async (path) => {
    const file = await openRegular(path, 'read').catch(() => null)
    for await (const line of file?.readLines() ?? []) {
      const [path, stamp, id, sha256] = readLine(line) ?? []
      if (path !== undefined && stamp !== undefined && id !== undefined && sha256 !== undefined)
        records.set(path, textOf({ id, stamp, sha256 }))
    }
  })
  let waiting: string[] = []

  function find(path: string): SyncRecord | null {
    const [id, sha256 = '', ...stamp] = records.get(path)?.split(' ') ?? []
    return id === undefined ? null : { id, sha256, stamp: stamp.join(' ') }
  }

  async function flush(): Promise<void> {
    if (waiting.length === 0) return
    const text = waiting.join('')
    waiting = []
    await files.use(sync, (path) => appendRegular(path, text))
  }

  return {
    find,
    has(path, stamp, id) {
      const found = find(path)
      return stamp !== '' && found?.stamp === stamp && found.id === id
    },
    count: () => records.size,
    async set(path, { id, stamp: given, sha256 }) {
      const stamp = Date.now() - modifiedAt(given) < stableAge ? '' : given
      const text = textOf({ id, stamp, sha256 })
      if (records.get(path) === text) return
      records.set(path, text)
      // The file may end with an incomplete line of a killed process.
      waiting.push(`\n${JSON.stringify([path, stamp, id, sha256])}`)
      if (waiting.length >= batchSize) await flush()
    },
    forget: (path) => void records.delete(path),
    flush,
    async compact() {
      waiting = []
      await files.use(sync, async (path) => {
        const lines = function* () {
          for (const name of records.keys()) {
            const { id = '', stamp = '', sha256 = '' } = find(name) ?? {}
            yield `${JSON.stringify([name, stamp, id, sha256])}\n`
          }
        }
        await replaceRegular(path, lines())
      })
    },
  }
}

/** The modification time in a stamp. Milliseconds since 1970; 0 without a stamp. */
const modifiedAt = (stamp: string): number => Number(stamp.split(' ')[1] ?? 0) / 1e6

function readLine(line: string): readonly string[] | null {
  try {
    const value: unknown = JSON.parse(line)
    return Array.isArray(value) && value.every((text) => typeof text === 'string') ? value : null
  } catch {
    return null
  }
}
