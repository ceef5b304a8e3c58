import { constants } from 'node:fs'
import { open, readFile, rename, rm } from 'node:fs/promises'
import { dirname } from 'node:path'

const { O_CREAT, O_EXCL, O_NOFOLLOW, O_WRONLY } = constants

/** Syncs a file or a directory. */
export async function syncPath(path: string): Promise<void> {
  const handle = await open(path, 'r')
  try {
    await handle.sync()
  } finally {
    await handle.close()
  }
}

/** Creates a file that must not exist. Never writes through a link, whose target may be any file of this user. */
export const createFile = (path: string) => open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0o600)

/** Replaces the whole file atomically: readers, and a start after a power failure, find the old text or the new one. */
export async function replaceFile(path: string, text: string): Promise<void> {
  // What an interrupted call has left, or a link that somebody else has put there.
  await rm(`${path}.new`, { force: true })
  const file = await createFile(`${path}.new`)
  try {
    await file.writeFile(text)
    await file.sync()
  } finally {
    await file.close()
  }
  await rename(`${path}.new`, path)
  await syncPath(dirname(path))
}

/** The parsed file; null if there is none, or if it is not JSON. */
export async function readJson(path: string): Promise<unknown> {
  const text = await readFile(path, 'utf8').catch(() => '')
  try {
    return JSON.parse(text)
  } catch {
    return null
  }
}
