import { createHash } from 'node:crypto'
import { mkdir, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { ResumeStore } from '@mediabucket/client'

/** How far uploads are, kept beyond the process. */
export interface UploadStates extends ResumeStore {
  /** How much is kept that a further run can go on with. */
  readonly begun: () => number
  /** The run has come to its end: what it finished is forgotten, so that the same file can be uploaded again. */
  readonly settle: () => Promise<void>
}

/** No service keeps an upload for as long. Milliseconds. */
const longest = 30 * 24 * 3_600_000

/**
 * One file for each key, its name a hash of it, its content the id that is kept; none but the user can read it. A
 * directory that cannot be written to is told once, and keeps nobody from uploading.
 */
export function uploadStates(directoryOf: () => string, tell: (message: string) => void): UploadStates {
  const kept = new Set<string>()
  const finished = new Set<string>()
  let prepared: Promise<string> | undefined
  let told = false
  const nameOf = (key: string) => createHash('sha256').update(key).digest('hex')

  function prepare(): Promise<string> {
    prepared ??= (async () => {
      const directory = directoryOf()
      await mkdir(directory, { recursive: true, mode: 0o700 })
      await dropStale(directory)
      return directory
    })()
    return prepared
  }

  async function attempt<T>(use: (directory: string) => Promise<T>): Promise<T | null> {
    try {
      return await use(await prepare())
    } catch (error) {
      if (!told)
        tell(`mediabucket: where uploads stand cannot be kept, an interrupted one begins anew: ${error}`)
      told = true
      return null
    }
  }

  return {
    begun: () => kept.size,

    async get(key) {
      const name = nameOf(key)
      if (finished.has(name)) return null
      const id = await attempt((directory) => readFile(join(directory, name), 'utf8').catch(nullIfMissing))
      if (id) kept.add(name)
      return id?.trim() || null
    },

    async set(key, upload) {
      const name = nameOf(key)
      await attempt((directory) => writeFile(join(directory, name), `${upload}\n`, { mode: 0o600 }))
      kept.add(name)
      finished.delete(name)
    },

    remove(key) {
      finished.add(nameOf(key))
    },

    async settle() {
      for (const name of finished) await attempt((directory) => rm(join(directory, name), { force: true }))
    },
  }
}

function nullIfMissing(error: NodeJS.ErrnoException): null {
  if (error.code === 'ENOENT') return null
  throw error
}

async function dropStale(directory: string): Promise<void> {
  for (const name of await readdir(directory)) {
    const path = join(directory, name)
    // Another process may have finished with it.
    const changed = await stat(path).then(({ mtimeMs }) => mtimeMs, nullIfMissing)
    if (changed !== null && Date.now() - changed > longest) await rm(path, { force: true })
  }
}
