import type { FileHandle } from 'node:fs/promises'
import { relative, resolve } from 'node:path'
import { DatabaseSync, StatementSync } from 'node:sqlite'
import { isMainThread, workerData } from 'node:worker_threads'
import { blockingFiles } from '../../packages/server/src/blobs/disk/blocking-files.ts'
import { type Files, nodeFiles, type WriterFiles } from '../../packages/server/src/blobs/disk/files.ts'
import type { CommitCall, Deed, FileCall } from './steps.ts'

/** Stands around every call: does its work or leaves it, waits before or after it, or throws; then the call fails. */
interface Watcher {
  file(call: FileCall, work: () => Promise<void>): Promise<void>
  commit(call: CommitCall, work: () => unknown): unknown
}

/** True in the threads of `mediabucket serve` that write; not in what else inherits their environment. */
export const isServer = (): boolean =>
  isMainThread ? process.argv[2] === 'serve' : Object(workerData).directory !== undefined

const data = resolve(process.env['MEDIABUCKET_DATA'] ?? '')

/**
 * Lets a watcher hear of every call of this thread that changes the data. Blobs have a seam for it, which this module
 * shares with the service; of SQLite's Node the methods are wrapped.
 */
export function watchDisk(watcher: Watcher): void {
  Object.assign(nodeFiles, watchedFiles({ ...nodeFiles }, watcher), watchedOpen({ ...nodeFiles }, watcher))
  Object.assign(blockingFiles, watchedFiles({ ...blockingFiles }, watcher))
  watchCommits(watcher)
}

function placeOf(path: unknown): FileCall['place'] {
  const [top, ...rest] = relative(data, String(path)).split('/')
  if (top === 'tmp' && rest.length === 1) return 'temporary'
  if (top === 'uploads' && rest.length === 1) return 'part'
  if (top !== 'blobs') return 'other'
  return (['root', 'shard', 'blob'] as const)[rest.length] ?? 'other'
}

const on = (path: unknown) => ({ path: String(path), place: placeOf(path) })

/** For calls that cannot be left out, since something is answered. */
async function answered<T>(watcher: Watcher, call: FileCall, work: () => Promise<T>): Promise<T> {
  const results: T[] = []
  await watcher.file(call, async () => {
    results.push(await work())
  })
  for (const result of results) return result
  throw new Error(`${call.name} cannot be left out`)
}

function watchedOpen(files: Pick<Files, 'open'>, watcher: Watcher): Pick<Files, 'open'> {
  const watchedHandle = (handle: FileHandle, path: unknown): FileHandle =>
    new Proxy(handle, {
      get(target, key) {
        const value: unknown = Reflect.get(target, key, target)
        if (typeof value !== 'function') return value
        const method = value.bind(target)
        if (key === 'sync' || key === 'datasync')
          return () => watcher.file({ name: 'sync', ...on(path) }, async () => method())
        if (key !== 'write' && key !== 'writev') return method
        return (...args: unknown[]) =>
          answered(watcher, { name: 'write', ...on(path) }, async () => method(...args))
      },
    })

  return {
    open: (path, ...rest) =>
      answered(watcher, { name: 'open', ...on(path) }, async () =>
        watchedHandle(await files.open(path, ...rest), path),
      ),
  }
}

function watchedFiles(files: WriterFiles, watcher: Watcher): WriterFiles {
  return {
    ...files,
    create: (path) =>
      answered(watcher, { name: 'open', ...on(path) }, async () => {
        const file = await files.create(path)
        return {
          ...file,
          write: (bytes) => watcher.file({ name: 'write', ...on(path) }, () => file.write(bytes)),
          sync: () => watcher.file({ name: 'sync', ...on(path) }, file.sync),
        }
      }),
    openDirectory(path) {
      const opened = files.openDirectory(path)
      return { ...opened, sync: () => watcher.file({ name: 'sync', ...on(path) }, opened.sync) }
    },
    mkdir: (path, mode) => watcher.file({ name: 'mkdir', ...on(path) }, () => files.mkdir(path, mode)),
    rename(from, to) {
      const { path: toPath, place } = on(to)
      return watcher.file({ name: 'rename', ...on(from), toPath, to: place }, () => files.rename(from, to))
    },
    unlink: (path) => watcher.file({ name: 'unlink', ...on(path) }, () => files.unlink(path)),
  }
}

/** What a statement tells of the transaction that it is part of. */
const deeds: readonly (readonly [RegExp, Deed])[] = [
  [/^\s*INSERT INTO media\b/, 'item'],
  [/^\s*INSERT INTO uploads\b/, 'upload'],
  [/^\s*UPDATE uploads SET received = \?/, 'offset'],
  [/^\s*UPDATE uploads SET received = length/, 'finish'],
  [/^\s*DELETE FROM media\b/, 'removal'],
  [/^\s*DELETE FROM tombstones\b/, 'tombstones'],
]

function watchCommits({ commit }: Watcher): void {
  let done = new Set<Deed>()
  for (const method of ['run', 'get', 'all'] as const)
    wrap(StatementSync.prototype, method, function (original, args) {
      if (this instanceof StatementSync)
        for (const [sql, deed] of deeds) if (sql.test(this.sourceSQL)) done.add(deed)
      return original.apply(this, args)
    })
  wrap(DatabaseSync.prototype, 'exec', function (original, args) {
    const work = () => original.apply(this, args)
    if (args[0] !== 'COMMIT') return work()
    const call = { name: 'commit', deeds: done } as const
    done = new Set()
    return commit(call, work)
  })
}

type Method = (this: unknown, ...args: unknown[]) => unknown

/** Puts `around` in the place of a method. */
export function wrap(
  owner: object,
  name: string,
  around: (this: unknown, original: Method, args: unknown[]) => unknown,
): void {
  const original: Method = Reflect.get(owner, name)
  Reflect.set(owner, name, function (this: unknown, ...args: unknown[]) {
    return around.call(this, original, args)
  })
}
