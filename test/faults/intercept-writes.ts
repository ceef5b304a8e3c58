import type { FileHandle } from 'node:fs/promises'
import { relative, resolve } from 'node:path'
import { DatabaseSync, StatementSync } from 'node:sqlite'
import { isMainThread, workerData } from 'node:worker_threads'
import { type Files, nodeFiles } from '../../packages/server/src/storage/blobs/disk/files.ts'
import type { Change, CommitCall, FileCall } from './steps.ts'

/** Wraps every call: runs `work` or skips it, may wait before or after it, and fails the call by throwing. */
interface Interceptor {
  file(call: FileCall, work: () => Promise<void>): Promise<void>
  commit(call: CommitCall, work: () => unknown): unknown
}

/** True in the writing threads of `mediabucket serve`, false in other processes that inherit their environment. */
export const isServer = (): boolean =>
  isMainThread ? process.argv[2] === 'serve' : Object(workerData).directory !== undefined

const data = resolve(process.env['MEDIABUCKET_DATA'] ?? '')

/**
 * Passes every call of this thread that changes the data to the interceptor: those of the blob store by replacing
 * `nodeFiles`, those of the catalog by wrapping the methods of node:sqlite.
 */
export function interceptWrites(interceptor: Interceptor): void {
  Object.assign(
    nodeFiles,
    interceptedFiles({ ...nodeFiles }, interceptor),
    interceptedOpen({ ...nodeFiles }, interceptor),
  )
  interceptCommits(interceptor)
}

function placeOf(path: unknown): FileCall['place'] {
  const [top, ...rest] = relative(data, String(path)).split('/')
  if (top === 'tmp' && rest.length === 1) return 'temporary'
  if (top === 'uploads' && rest.length === 1) return 'part'
  if (top !== 'blobs') return 'other'
  return (['root', 'shard', 'blob'] as const)[rest.length] ?? 'other'
}

const on = (path: unknown) => ({ path: String(path), place: placeOf(path) })

/** For calls that return a value and so cannot be skipped. */
async function withResult<T>(interceptor: Interceptor, call: FileCall, work: () => Promise<T>): Promise<T> {
  const results: T[] = []
  await interceptor.file(call, async () => {
    results.push(await work())
  })
  for (const result of results) return result
  throw new Error(`${call.name} cannot be skipped`)
}

function interceptedOpen(files: Pick<Files, 'open'>, interceptor: Interceptor): Pick<Files, 'open'> {
  const interceptedHandle = (handle: FileHandle, path: unknown): FileHandle =>
    new Proxy(handle, {
      get(target, key) {
        const value: unknown = Reflect.get(target, key, target)
        if (typeof value !== 'function') return value
        const method = value.bind(target)
        if (key === 'sync' || key === 'datasync')
          return () => interceptor.file({ name: 'sync', ...on(path) }, async () => method())
        if (key !== 'write' && key !== 'writev') return method
        return (...args: unknown[]) =>
          withResult(interceptor, { name: 'write', ...on(path) }, async () => method(...args))
      },
    })

  return {
    open: (path, ...rest) =>
      withResult(interceptor, { name: 'open', ...on(path) }, async () =>
        interceptedHandle(await files.open(path, ...rest), path),
      ),
  }
}

function interceptedFiles(files: Files, interceptor: Interceptor): Files {
  return {
    ...files,
    create: (path) =>
      withResult(interceptor, { name: 'open', ...on(path) }, async () => {
        const file = await files.create(path)
        return {
          ...file,
          write: (bytes) => interceptor.file({ name: 'write', ...on(path) }, () => file.write(bytes)),
          sync: () => interceptor.file({ name: 'sync', ...on(path) }, file.sync),
        }
      }),
    openDirectory(path) {
      const opened = files.openDirectory(path)
      return { ...opened, sync: () => interceptor.file({ name: 'sync', ...on(path) }, opened.sync) }
    },
    mkdir: (path, mode) => interceptor.file({ name: 'mkdir', ...on(path) }, () => files.mkdir(path, mode)),
    rename(from, to) {
      const { path: toPath, place } = on(to)
      return interceptor.file({ name: 'rename', ...on(from), toPath, to: place }, () =>
        files.rename(from, to),
      )
    },
    unlink: (path) => interceptor.file({ name: 'unlink', ...on(path) }, () => files.unlink(path)),
  }
}

/** The change that a statement makes. */
const changes: readonly (readonly [RegExp, Change])[] = [
  [/^\s*INSERT INTO intents\b/, 'intents'],
  [/^\s*INSERT INTO items\b/, 'item'],
  [/^\s*INSERT INTO uploads\b/, 'upload'],
  [/^\s*UPDATE uploads SET received = \?/, 'offset'],
  [/^\s*UPDATE uploads SET received = length/, 'finish'],
  [/^\s*DELETE FROM items\b/, 'removal'],
  [/^\s*DELETE FROM tombstones\b/, 'tombstones'],
  [/^\s*DELETE FROM intents\b/, 'settled intents'],
  [/^\s*INSERT INTO object_keys\b/, 'key'],
  [/^\s*INSERT INTO object_uploads\b/, 'object upload'],
  [/^\s*INSERT INTO object_parts\b/, 'object part'],
  [/^\s*UPDATE object_uploads SET item\b/, 'completion'],
  [/^\s*DELETE FROM object_uploads\b/, 'ended object upload'],
]

function interceptCommits({ commit }: Interceptor): void {
  let done = new Set<Change>()
  for (const method of ['run', 'get', 'all'] as const)
    wrap(StatementSync.prototype, method, function (original, args) {
      if (this instanceof StatementSync)
        for (const [sql, change] of changes) if (sql.test(this.sourceSQL)) done.add(change)
      return original.apply(this, args)
    })
  wrap(DatabaseSync.prototype, 'exec', function (original, args) {
    const work = () => original.apply(this, args)
    if (args[0] !== 'COMMIT') return work()
    const call = { name: 'commit', changes: done } as const
    done = new Set()
    return commit(call, work)
  })
}

type Method = (this: unknown, ...args: unknown[]) => unknown

/** Replaces a method by `around`. */
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
