import { lstatSync, readdirSync } from 'node:fs'
import { join } from 'node:path'

/** Permission bits of everybody but the owner. */
const others = 0o077

/** Entries of a data directory that other users may read, write or enter: a version before 0.1.0 or somebody else made them. */
export function exposedEntries(directory: string): string[] {
  return readdirSync(directory).filter((name) => {
    const status = lstatSync(join(directory, name), { throwIfNoEntry: false })
    if (!status || !(status.isFile() || status.isDirectory()) || name === 'lost+found') return false
    return (status.mode & others) !== 0
  })
}
