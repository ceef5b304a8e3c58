import { createHash } from 'node:crypto'
import { mkdir, readdir, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'

/** Small files that outlive the process, one for each key; none but the user can read them. */
export interface StateFiles {
  /**
   * Runs an operation on the path of a key's file, which may not exist yet. Null where the directory cannot be used:
   * that is reported once, and keeps nobody from uploading.
   */
  use<T>(key: string, operation: (path: string) => Promise<T>): Promise<T | null>
}

/** No service keeps an upload for as long. Milliseconds. */
const longest = 30 * 24 * 3_600_000

/** The names of the files are hashes of their keys. The directory is made, and cleared of old files, at its first use. */
export function stateFiles(directoryOf: () => string, report: (message: string) => void): StateFiles {
  let prepared: Promise<string> | undefined
  let reported = false

  async function prepare(): Promise<string> {
    const directory = directoryOf()
    await mkdir(directory, { recursive: true, mode: 0o700 })
    await dropOld(directory)
    return directory
  }

  return {
    async use(key, operation) {
      try {
        prepared ??= prepare()
        return await operation(join(await prepared, createHash('sha256').update(key).digest('hex')))
      } catch (error) {
        if (!reported)
          report(
            `mediabucket: the state of uploads cannot be stored, so an interrupted one starts over: ${error}`,
          )
        reported = true
        return null
      }
    },
  }
}

export function nullIfMissing(error: NodeJS.ErrnoException): null {
  if (error.code === 'ENOENT') return null
  throw error
}

async function dropOld(directory: string): Promise<void> {
  for (const name of await readdir(directory)) {
    const path = join(directory, name)
    // Another process may have removed it.
    const changed = await stat(path).then(({ mtimeMs }) => mtimeMs, nullIfMissing)
    if (changed !== null && Date.now() - changed > longest) await rm(path, { force: true })
  }
}
