import { randomBytes } from 'node:crypto'
import { realpathSync, rmSync, statfsSync, statSync } from 'node:fs'
import { open } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { promisify } from 'node:util'

// A file of some megabytes beside the catalog, whose only use is to be removed: on a disk that other programs have filled,
// it makes room for the log of deletes and for the start.

/** Bytes; the log of a server that is stopped with 1,000 pages in it has as many. */
const largest = 4 * 1024 * 1024

/** What a start needs at most: the shared memory of the log, and pages that a checkpoint adds. Bytes. */
const neededToOpen = 1024 * 1024

/** Where SQLite puts the catalog and its log, also where `catalog.db` is a link to another disk. */
export function catalogDirectory(directory: string): string {
  return dirname(truePath(directory))
}

function truePath(directory: string): string {
  const path = join(directory, 'catalog.db')
  try {
    return realpathSync(path)
  } catch {
    return path
  }
}

function ballastPath(directory: string): string {
  const path = truePath(directory)
  return join(dirname(path), `${basename(path)}-ballast`)
}

/** Bytes that the ballast takes; 0 where there is none. */
export const heldByBallast = (directory: string): number =>
  statSync(ballastPath(directory), { throwIfNoEntry: false })?.size ?? 0

/** Removes the ballast; false where there is none. */
export function releaseBallast(directory: string): boolean {
  if (heldByBallast(directory) === 0) return false
  rmSync(ballastPath(directory), { force: true })
  return true
}

export function freeForCatalog(directory: string): number {
  const { bsize, bavail } = statfsSync(catalogDirectory(directory))
  return bavail * bsize
}

/** Whether the disk of the catalog has next to no room left. */
export function isDiskFull(directory: string): boolean {
  return freeForCatalog(directory) < neededToOpen
}

/** Removes the ballast where the disk has no room left to open the catalog. */
export function makeRoomToOpen(directory: string): void {
  if (isDiskFull(directory)) releaseBallast(directory)
}

const random = promisify(randomBytes)

/** Makes the ballast where there is none: half of `reserve` at the most. Random bytes, which no file system compresses away. */
export async function makeBallast(directory: string, reserve: number): Promise<void> {
  const size = Math.min(largest, Math.floor(reserve / 2))
  if (size === 0 || heldByBallast(directory) > 0) return
  const path = ballastPath(directory)
  try {
    const file = await open(path, 'wx', 0o600)
    try {
      await file.writeFile(await random(size))
    } finally {
      await file.close()
    }
  } catch (error) {
    rmSync(path, { force: true })
    throw error
  }
}
