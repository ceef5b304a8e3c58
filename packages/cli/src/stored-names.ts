import type { BigIntStats } from 'node:fs'
import { lstat, readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { CommandError } from './command.ts'
import { nullIfMissing } from './guarded-files.ts'

/** A file or directory has the place of an item, which can have it once that is gone. */
export class InTheWay extends CommandError {
  /** Below the directory, if it is a file where a directory is needed; null for anything else. */
  readonly file: string | null

  constructor(message: string, file: string | null = null) {
    super(message)
    this.file = file
  }
}

/** Where a path is below a directory. */
export interface StoredPath {
  /** As the file system has stored its names; those that it does not have are as they were given. */
  readonly name: string
  readonly found: BigIntStats | null
}

/** The names of one directory. */
interface Names {
  readonly all: Set<string>
  /** Names in another form of Unicode than NFC, by their NFC. */
  readonly odd: Map<string, string>
}

/** Directories whose names are in memory. Paths come in order, so that few are in use. */
const remembered = 64

/**
 * Finds files below a directory by their paths in the bucket, whose names are in NFC. The file system is asked, not the platform: the names of a
 * directory are compared with what it finds, because some file systems find a file by a name of another case or another form of Unicode.
 */
export function storedNames(root: string) {
  const directories = new Map<string, Names>()

  async function namesOf(directory: string, isRead = false): Promise<Names> {
    const known = isRead ? undefined : directories.get(directory)
    if (known !== undefined) return known
    const all = new Set(await readdir(join(root, directory)).catch(emptyIfMissing))
    const odd = new Map<string, string>()
    for (const name of all) {
      const form = name.normalize('NFC')
      if (form !== name) odd.set(form, name)
    }
    const [oldest] = directories.keys()
    if (directories.size >= remembered && oldest !== undefined) directories.delete(oldest)
    directories.set(directory, { all, odd })
    return { all, odd }
  }

  /** The forms of Unicode in which the directory has the name, NFC first. Throws InTheWay if the file system finds another name by it. */
  async function formsOf(directory: string, name: string): Promise<string[]> {
    for (const isRead of [false, true]) {
      const { all, odd } = await namesOf(directory, isRead)
      const other = odd.get(name.normalize('NFC'))
      const forms = [
        ...(all.has(name) ? [name] : []),
        ...(other === undefined || other === name ? [] : [other]),
      ]
      if (forms.length > 0) return forms
      const found = await lstat(join(root, directory, name)).catch(nullIfMissing)
      if (found === null) return []
    }
    const { all } = await namesOf(directory)
    const other = [...all].find((stored) => foldCase(stored) === foldCase(name)) ?? 'another file'
    throw new InTheWay(`this file system does not distinguish its name from ${join(directory, other)}`)
  }

  /** Of two forms of a name, the one with the file; the first one if there is no file. */
  async function findBelow(directory: string, [part = '', ...rest]: readonly string[]): Promise<StoredPath> {
    const missing = { name: [directory, part, ...rest].filter(Boolean).join('/'), found: null }
    let place: StoredPath | null = null
    let obstacle: unknown = null
    for (const form of await formsOf(directory, part)) {
      const name = [directory, form].filter(Boolean).join('/')
      const stored = await (rest.length > 0 ? findInDirectory(name, rest) : findFile(name)).catch(
        (error: unknown) => {
          obstacle ??= error
          return null
        },
      )
      if (stored !== null && stored.found !== null) return stored
      place ??= stored
    }
    if (place === null && obstacle !== null) throw obstacle
    return place ?? missing
  }

  async function findInDirectory(name: string, rest: readonly string[]): Promise<StoredPath> {
    const found = await lstat(join(root, name)).catch(nullIfMissing)
    if (found === null) return { name: [name, ...rest].join('/'), found }
    if (found.isDirectory()) return await findBelow(name, rest)
    if (found.isFile()) throw new InTheWay(`${join(root, name)} is a file`, name)
    throw new CommandError(`${join(root, name)} is no directory`)
  }

  async function findFile(name: string): Promise<StoredPath> {
    const found = await lstat(join(root, name), { bigint: true }).catch(nullIfMissing)
    if (found?.isDirectory() === true) throw new InTheWay(`${join(root, name)} is a directory`)
    return { name, found }
  }

  return {
    /** Throws InTheWay if something else has the place of the file or of one of its directories, and CommandError for a link to a directory. */
    find: (path: string): Promise<StoredPath> => findBelow('', path.split('/')),

    /** To be called after files were removed. */
    forget: () => directories.clear(),

    /** To be called after the directories of a path were created, so that the file system is not asked again. */
    created(path: string): void {
      const parts = path.split('/').slice(0, -1)
      for (const [index, part] of parts.entries())
        directories.get(parts.slice(0, index).join('/'))?.all.add(part)
    },
  }
}

/** A key that is equal for names that a file system may not distinguish. */
export const foldCase = (name: string): string => name.normalize('NFC').toLowerCase()

function emptyIfMissing(error: unknown): string[] {
  nullIfMissing(error)
  return []
}
