import { randomBytes } from 'node:crypto'
import { realpathSync, rmSync, statfsSync, statSync } from 'node:fs'
import { open } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { promisify } from 'node:util'

// A ballast file of a few megabytes beside the catalog. It is removed when other programs have filled the disk, which leaves
// space for the write-ahead log of deletes and for a start.

/** Bytes; the size of a write-ahead log of 500 pages. */
const maxSize = 4 * 1024 * 1024

/** The most bytes that a start needs: the shared memory of the log, and pages that a checkpoint adds. */
const neededToOpen = 1024 * 1024

/** The directory in which SQLite stores the catalog and its log: that of the target if `catalog.db` is a link. */
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

/** Bytes; 0 if there is no ballast. */
export const ballastSize = (directory: string): number =>
  statSync(ballastPath(directory), { throwIfNoEntry: false })?.size ?? 0

/** Removes the ballast; false if there is none. */
export function releaseBallast(directory: string): boolean {
  if (ballastSize(directory) === 0) return false
  rmSync(ballastPath(directory), { force: true })
  return true
}

/** Free bytes on the catalog's disk. */
export function freeBytes(directory: string): number {
  const { bsize, bavail } = statfsSync(catalogDirectory(directory))
  return bavail * bsize
}

/** True if the catalog's disk has less free space than a start needs. */
export function isDiskFull(directory: string): boolean {
  return freeBytes(directory) < neededToOpen
}

/** Removes the ballast if the disk has too little space to open the catalog. */
export function reclaimSpaceToOpen(directory: string): void {
  if (isDiskFull(directory)) releaseBallast(directory)
}

const random = promisify(randomBytes)

/** Creates the ballast if there is none, of at most half of `reserve`. Random bytes, because some file systems compress. */
export async function createBallast(directory: string, reserve: number): Promise<void> {
  const size = Math.min(maxSize, Math.floor(reserve / 2))
  if (size === 0 || ballastSize(directory) > 0) return
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
