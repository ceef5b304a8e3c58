import { createHash } from 'node:crypto'
import { lstat, mkdir, readdir, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'

/** Small files that persist, one for each key, readable by the user only. */
export interface StateFiles {
  /**
   * Runs an operation on the path of a key's file, which may not exist. Returns null if the directory cannot be used; that is
   * reported once, and uploads continue.
   */
  use<T>(key: string, operation: (path: string) => Promise<T>): Promise<T | null>
}

/** Milliseconds; longer than services keep uploads. */
const maxAge = 30 * 24 * 3_600_000

/** Files are named by the hashes of their keys. The first use creates the directory and removes old files. */
export function stateFiles(directoryOf: () => string, report: (message: string) => void): StateFiles {
  let prepared: Promise<string> | undefined
  let reported = false

  async function prepare(): Promise<string> {
    const directory = directoryOf()
    await mkdir(directory, { recursive: true, mode: 0o700 })
    await removeOld(directory)
    return directory
  }

  return {
    async use(key, operation) {
      try {
        prepared ??= prepare()
        const path = join(await prepared, createHash('sha256').update(key).digest('hex'))
        // Its target would be overwritten.
        if ((await lstat(path).catch(nullIfMissing))?.isSymbolicLink()) await rm(path)
        return await operation(path)
      } catch (error) {
        if (!reported)
          report(
            `mediabucket: the state of uploads cannot be stored, so an interrupted upload cannot be continued: ${error}`,
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

async function removeOld(directory: string): Promise<void> {
  for (const name of await readdir(directory)) {
    const path = join(directory, name)
    // Another process may have removed it.
    const changed = await stat(path).then(({ mtimeMs }) => mtimeMs, nullIfMissing)
    if (changed !== null && Date.now() - changed > maxAge) await rm(path, { force: true })
  }
}
