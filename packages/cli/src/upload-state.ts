import { createHash, randomUUID } from 'node:crypto'
import { lstat, mkdir, readdir, realpath, rm } from 'node:fs/promises'
import { dirname, isAbsolute, join, relative, resolve, sep } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import type { ResumeStore } from '@mediabucket/client'
import { CommandError } from './command.ts'
import {
  appendRegular,
  nullIfMissing,
  readRegular,
  removeIrregular,
  replaceRegular,
} from './guarded-files.ts'
import { isRunning, type ProcessIdentity, startTime, thisProcess } from './processes.ts'

/** Small files that persist, one for each key, readable by the user only. */
export interface StateFiles {
  /**
   * Runs an operation on the path of a key's file, which may not exist. Returns null if the directory cannot be used; that is
   * reported once, and uploads continue.
   */
  use<T>(key: string, operation: (path: string, directory: string) => Promise<T>): Promise<T | null>
}

/** Milliseconds; longer than services keep uploads. */
const maxAge = 30 * 24 * 3_600_000

/**
 * Files are named by the hashes of their keys. The first use creates the directory and removes old files. The directory is null for a user who has
 * no home directory.
 */
export function stateFiles(directory: string | null, report: (message: string) => void): StateFiles {
  let prepared: Promise<string> | undefined
  let reported = false

  return {
    async use(key, operation) {
      try {
        prepared ??= prepareState(directory)
        const known = await prepared
        await requireDirectories(known)
        const path = join(known, createHash('sha256').update(key).digest('hex'))
        await removeIrregular(path)
        return await operation(path, known)
      } catch (error) {
        if (!reported)
          report(
            `mediabucket: the state of uploads cannot be stored, so an interrupted upload cannot be continued: ${error instanceof Error ? error.message : error}`,
          )
        reported = true
        return null
      }
    },
  }
}

async function prepareState(directory: string | null): Promise<string> {
  if (directory === null)
    throw new CommandError('this user has no home directory. Set HOME or XDG_STATE_HOME to a directory')
  await mkdir(directory, { recursive: true, mode: 0o700 })
  await requireDirectories(directory)
  await removeOld(directory)
  return directory
}

/** A link in place of the directory, or of that of all state, would lead to files of somebody else. */
async function requireDirectories(directory: string): Promise<void> {
  for (const path of [dirname(directory), directory])
    if (!(await lstat(path)).isDirectory()) throw new CommandError(`${path} is no directory`)
}

async function removeOld(directory: string): Promise<void> {
  for (const name of await readdir(directory)) {
    const path = join(directory, name)
    // Another process may have removed it.
    const found = await lstat(path).catch(nullIfMissing)
    if (found === null || found.isDirectory() || Date.now() - found.mtimeMs <= maxAge) continue
    await rm(path, { force: true })
  }
}

/** A run that transfers the files at or below the paths. */
interface Lock {
  readonly process: ProcessIdentity
  /** Only locks of the same owner exclude each other. */
  readonly owner: string
  readonly paths: readonly string[]
  /** False until the run has found no other one. */
  readonly isHeld: boolean
  /** When the run was completed, in milliseconds since 1970; null before. */
  readonly completedAt: number | null
}

/** Milliseconds for which the lock of a completed run is kept for processes that were started before its end. */
const completedAge = 300_000

/** Milliseconds to wait until the other one of two runs that start at the same time has removed its lock. */
const lockTimeout = 2_000

/**
 * Locks the files, and returns the function that releases them. Throws CommandError if another process of the owner has locked any of
 * them, or has completed work on them since this process was started. Each run writes its own file before it lists the others, so of two
 * runs at least one detects the other. Of runs that start at the same time, the one with the smallest random name continues.
 */
export async function lockPaths(
  files: StateFiles,
  {
    owner,
    paths,
    activity,
  }: {
    readonly owner: string
    readonly paths: readonly string[]
    /** For the message, such as `upload of these files`. */
    readonly activity: string
  },
): Promise<(isCompleted: boolean) => Promise<void>> {
  const real = await Promise.all(paths.map((path) => realpath(path).catch(() => resolve(path))))
  const lock: Lock = { process: thisProcess(), owner, paths: real, isHeld: false, completedAt: null }
  const name = `${randomUUID()}.lock`
  const write = (directory: string, changes: Partial<Lock>) =>
    replaceRegular(join(directory, name), JSON.stringify({ ...lock, ...changes }))
  const release = async (isCompleted: boolean) => {
    await files.use(name, (_path, directory) =>
      isCompleted
        ? write(directory, { isHeld: true, completedAt: Date.now() })
        : rm(join(directory, name), { force: true }),
    )
  }
  const others = () => files.use(name, (_path, directory) => otherLocks(directory, name, lock))

  await files.use(name, (_path, directory) => write(directory, {}))
  for (const start = performance.now(); ; await setTimeout(20)) {
    const found = (await others()) ?? []
    const [first] = found
    if (first === undefined) break
    const isLate = performance.now() - start > lockTimeout
    if (!isLate && !found.some((other) => other.isHeld || other.name < name)) continue
    await release(false)
    throw inProgress(activity, found.find(({ isHeld }) => isHeld) ?? first)
  }
  await files.use(name, (_path, directory) => write(directory, { isHeld: true }))
  return release
}

interface OtherLock extends Lock {
  readonly name: string
  readonly path: string
}

/** The locks of other processes on the same files. Removes those that have ended. */
async function otherLocks(directory: string, own: string, lock: Lock): Promise<OtherLock[]> {
  const found: OtherLock[] = []
  for (const name of await readdir(directory)) {
    if (!name.endsWith('.lock') || name === own) continue
    const path = join(directory, name)
    const other = readLock((await readRegular(path).catch(nullIfIrregular)) ?? '')
    if (other === null) continue
    const { completedAt } = other
    // Also if the clock was set back since.
    const hasEnded =
      completedAt === null
        ? isRunning(other.process) === false
        : Math.abs(Date.now() - completedAt) > completedAge
    if (hasEnded) await rm(path, { force: true })
    else if (overlap(other, lock) && (completedAt ?? Number.POSITIVE_INFINITY) > startTime())
      found.push({ ...other, name, path })
  }
  return found
}

/** No run writes its lock as a link or a FIFO. */
function nullIfIrregular(error: unknown): null {
  if (error instanceof CommandError) return null
  throw error
}

const overlap = (one: Lock, other: Lock): boolean =>
  one.owner === other.owner &&
  one.paths.some((path) =>
    other.paths.some((second) => isAtOrBelow(path, second) || isAtOrBelow(second, path)),
  )

function isAtOrBelow(path: string, directory: string): boolean {
  const way = relative(directory, path)
  return !isAbsolute(way) && way.split(sep, 1)[0] !== '..'
}

function inProgress(
  activity: string,
  { process: { pid, host }, path, completedAt }: OtherLock,
): CommandError {
  if (completedAt !== null)
    return new CommandError(
      `another ${activity} was completed while this one started: process ${pid}. To repeat it, run the command again.`,
    )
  const other = `another ${activity} is in progress`
  return new CommandError(
    host === thisProcess().host
      ? `${other}: process ${pid}. Wait until it ends, or stop it and run the command again to continue.`
      : `${other}: process ${pid} on ${JSON.stringify(host)}. Wait until it ends. If it was killed, remove ${path} and run the command again to continue.`,
  )
}

/** Null for a file of another kind. */
function readLock(text: string): Lock | null {
  const lock: unknown = parseJson(text)
  if (!isObject(lock) || !isObject(lock['process']) || !Array.isArray(lock['paths'])) return null
  const { process, owner, paths, isHeld, completedAt } = lock
  const { host, pid, started } = process
  if (typeof host !== 'string' || typeof pid !== 'number' || typeof owner !== 'string') return null
  return {
    process: { host, pid, started: typeof started === 'string' ? started : null },
    owner,
    paths: paths.filter((path) => typeof path === 'string'),
    isHeld: isHeld === true,
    completedAt: typeof completedAt === 'number' ? completedAt : null,
  }
}

/** Persistent state of resumable uploads: the upload's id for each key. */
export interface UploadStates extends ResumeStore {
  /** True if a later run can continue this one. */
  readonly begun: () => boolean
  /** To be called at the end of the run: removes the finished uploads, so that the same files can be uploaded again. */
  readonly removeFinished: () => Promise<void>
}

export function uploadStates(files: StateFiles): UploadStates {
  const stored = new Set<string>()
  const finished = new Set<string>()
  return {
    begun: () => stored.size > 0,

    async get(key) {
      if (finished.has(key)) return null
      const id = await files.use(key, (path) => readRegular(path))
      if (id) stored.add(key)
      return id?.trim() || null
    },

    async set(key, upload) {
      await files.use(key, (path) => replaceRegular(path, `${upload}\n`))
      stored.add(key)
      finished.delete(key)
    },

    remove(key) {
      finished.add(key)
    },

    async removeFinished() {
      for (const key of finished) await files.use(key, (path) => rm(path, { force: true }))
    },
  }
}

/** The properties of an item that are printed, or needed to find it again. */
export interface StoredItem {
  readonly id: string
  readonly url: string
  /** Bytes. */
  readonly size: number
  /** The stored name; undefined if an earlier version of the command has recorded the item. */
  readonly filename?: string | null | undefined
  /** The same. */
  readonly sha256?: string | undefined
}

/** A request that stores files, by their fingerprints in the order sent, and its Idempotency-Key. */
export interface Batch {
  readonly key: string
  readonly files: readonly string[]
}

/**
 * The requests of a run and their responses, recorded before and after each request. A repeated run reads it, so that no file is
 * stored twice.
 */
export interface UploadJournal {
  /** When the first run began, in milliseconds since 1970. */
  readonly startedAt: number
  /** Records the run before its first request. */
  readonly begin: () => Promise<void>
  /** True if a later run can continue this one. */
  readonly begun: () => boolean
  /** The item that an earlier run stored for a file; `lost` if the response was lost. */
  readonly stored: (file: string) => StoredItem | 'lost' | null
  /** The fingerprints of all files that an earlier run stored, with their items. */
  readonly allStored: () => Iterable<readonly [file: string, item: StoredItem | 'lost']>
  /** The batches that an earlier run sent without receiving a response. */
  readonly unanswered: readonly Batch[]
  readonly sending: (batch: Batch) => Promise<void>
  /** `items` are in the order of the files; null if the service stored them and the response was lost. */
  readonly answered: (batch: Batch, items: readonly StoredItem[] | null) => Promise<void>
  /** The service refused the batch and stored nothing. */
  readonly refused: (batch: Batch) => Promise<void>
  readonly remove: () => Promise<void>
}

type Entry =
  | { readonly run: string; readonly at?: number }
  | { readonly sending: Batch }
  | { readonly answered: string; readonly items: readonly StoredItem[] | null }
  | { readonly refused: string }

/** One line of JSON for each entry, appended. */
export async function openJournal(files: StateFiles, command: string): Promise<UploadJournal> {
  const found = await files.use(command, (path) => readRegular(path))
  const entries = (found ?? '').split('\n').flatMap(readEntry)
  const earlier = entries.find((entry) => 'run' in entry)
  const { run, at: startedAt = Date.now() } = earlier ?? { run: randomUUID() }
  const open = new Map<string, Batch>()
  const items = new Map<string, StoredItem | 'lost'>()
  for (const entry of entries) {
    if ('sending' in entry) open.set(entry.sending.key, entry.sending)
    else if ('answered' in entry) {
      const batch = open.get(entry.answered)
      for (const [index, file] of batch?.files.entries() ?? [])
        items.set(file, entry.items === null ? 'lost' : (entry.items[index] ?? 'lost'))
      open.delete(entry.answered)
    } else if ('refused' in entry) open.delete(entry.refused)
  }
  let begun = earlier !== undefined
  let isNew = !begun

  async function append(...added: readonly Entry[]): Promise<void> {
    const lines = isNew ? [{ run, at: startedAt }, ...added] : added
    isNew = false
    begun = true
    // The file may end with an incomplete line of a killed process.
    const text = lines.map((line) => `\n${JSON.stringify(line)}`).join('')
    await files.use(command, (path) => appendRegular(path, text, { flush: true }))
  }

  return {
    startedAt,
    async begin() {
      if (isNew) await append()
    },
    begun: () => begun,
    stored: (file) => items.get(file) ?? null,
    allStored: () => items,
    unanswered: [...open.values()],
    sending: (batch) => append({ sending: batch }),
    answered: (batch, items) => append({ answered: batch.key, items }),
    refused: (batch) => append({ refused: batch.key }),
    async remove() {
      if (begun) await files.use(command, (path) => rm(path, { force: true }))
    },
  }
}

function readEntry(line: string): Entry[] {
  const entry: unknown = parseJson(line)
  if (!isObject(entry)) return []
  const { run, at, sending, answered, items, refused } = entry
  if (typeof run === 'string') return [typeof at === 'number' ? { run, at } : { run }]
  if (typeof refused === 'string') return [{ refused }]
  if (isBatch(sending)) return [{ sending }]
  if (typeof answered !== 'string') return []
  return Array.isArray(items) && items.every(isItem) ? [{ answered, items }] : [{ answered, items: null }]
}

function parseJson(line: string): unknown {
  try {
    return JSON.parse(line)
  } catch {
    return null
  }
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null

const isBatch = (value: unknown): value is Batch =>
  isObject(value) &&
  typeof value['key'] === 'string' &&
  Array.isArray(value['files']) &&
  value['files'].every((file) => typeof file === 'string')

const isItem = (value: unknown): value is StoredItem =>
  isObject(value) &&
  typeof value['id'] === 'string' &&
  typeof value['url'] === 'string' &&
  typeof value['size'] === 'number' &&
  (value['filename'] === undefined || value['filename'] === null || typeof value['filename'] === 'string') &&
  (value['sha256'] === undefined || typeof value['sha256'] === 'string')
