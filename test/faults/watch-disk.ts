import files from 'node:fs/promises'
import { syncBuiltinESMExports } from 'node:module'
import { relative, resolve } from 'node:path'
import { DatabaseSync, StatementSync } from 'node:sqlite'
import { isMainThread, workerData } from 'node:worker_threads'
import type { CommitCall, Deed, FileCall } from './steps.ts'

/** Stands around every call: does its work or leaves it, waits before or after it, or throws; then the call fails. */
interface Watcher {
  file(call: FileCall, work: () => Promise<unknown>): Promise<unknown>
  commit(call: CommitCall, work: () => unknown): unknown
}

/** True in the threads of `mediabucket serve` that write; not in what else inherits their environment. */
export const isServer = (): boolean =>
  isMainThread ? process.argv[2] === 'serve' : 'directory' in workerData

const data = resolve(process.env['MEDIABUCKET_DATA'] ?? '')

/** Lets a watcher hear of every call of this thread that changes the data: Node's own functions are wrapped. */
export function watchDisk(watcher: Watcher): void {
  watchFiles(watcher)
  watchCommits(watcher)
}

function placeOf(path: unknown): FileCall['place'] {
  const [top, ...rest] = relative(data, String(path)).split('/')
  if (top === 'tmp' && rest.length === 1) return 'temporary'
  if (top === 'uploads' && rest.length === 1) return 'part'
  if (top !== 'blobs') return 'other'
  return (['root', 'shard', 'blob'] as const)[rest.length] ?? 'other'
}

/** The methods of handles that change the disk. */
const handleCalls = [
  ['write', 'write'],
  ['writev', 'write'],
  ['sync', 'sync'],
  ['datasync', 'sync'],
] as const

function watchFiles({ file }: Watcher): void {
  const paths = new WeakMap<object, string>()
  const path = (args: readonly unknown[], at = 0) => {
    const given = String(args[at])
    return { path: given, place: placeOf(given) }
  }

  wrap(files, 'open', async (original, args) => {
    const handle: unknown = await file({ name: 'open', ...path(args) }, async () => original(...args))
    paths.set(Object(handle), String(args[0]))
    watchHandles(Object(handle))
    return handle
  })
  for (const name of ['unlink', 'mkdir'] as const)
    wrap(files, name, (original, args) => file({ name, ...path(args) }, async () => original(...args)))
  wrap(files, 'rename', (original, args) => {
    const to = path(args, 1)
    return file({ name: 'rename', ...path(args), toPath: to.path, to: to.place }, async () =>
      original(...args),
    )
  })
  syncBuiltinESMExports()

  let watched = false
  /** Every handle has one prototype, which no module exports. */
  function watchHandles(handle: object): void {
    if (watched) return
    watched = true
    for (const [method, name] of handleCalls)
      wrap(Object.getPrototypeOf(handle), method, function (original, args) {
        return file({ name, ...path([paths.get(Object(this))]) }, async () => original.apply(this, args))
      })
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
