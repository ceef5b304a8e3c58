import { statfsSync, statSync } from 'node:fs'

export interface DiskSpace {
  /** Equal for paths on one file system. */
  readonly device: number
  /** Bytes that this process may still write. */
  readonly free: number
  readonly total: number
}

/** The space of the file system of a path. Synchronous: it takes a few microseconds and does not access the disk. */
export function diskSpace(path: string): DiskSpace {
  const { bsize, bavail, blocks } = statfsSync(path)
  return { device: statSync(path).dev, free: bavail * bsize, total: blocks * bsize }
}
