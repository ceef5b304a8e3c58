import { renameSync } from 'node:fs'
import { open } from 'node:fs/promises'
import { DatabaseSync } from 'node:sqlite'
import { Worker } from 'node:worker_threads'
import { readBrokenOrder } from './orders.ts'
import type { FileCall } from './steps.ts'
import { isServer, watchDisk, wrap } from './watch-disk.ts'

// Loaded into a server as failpoints.ts is: makes it one that does things in a wrong order, for the tests that must
// notice.

/** Milliseconds by which a thing comes too late. */
const late = 50

/** Opened anew: the service has closed its own handle by then. */
async function syncPath(path: string): Promise<void> {
  const handle = await open(path)
  await handle.sync()
  await handle.close()
}

const isKeeping = (call: FileCall) => call.name === 'rename' && call.to === 'blob'
const syncs = (call: FileCall, ...places: FileCall['place'][]) =>
  call.name === 'sync' && places.includes(call.place)

const files = (file: (call: FileCall, work: () => Promise<void>) => Promise<void>) =>
  watchDisk({ file, commit: (_, work) => work() })

const leavesOut = (leaves: (call: FileCall) => boolean) =>
  files(async (call, work) => {
    if (!leaves(call)) await work()
  })

const breaks = {
  'no sync of the file': () => leavesOut((call) => syncs(call, 'temporary', 'part')),
  'no sync of the directory': () => leavesOut((call) => syncs(call, 'shard')),
  'no sync of a new directory': () => leavesOut((call) => syncs(call, 'root')),
  'rename before sync': () => {
    files(async (call, work) => {
      if (syncs(call, 'temporary', 'part')) return
      await work()
      if (call.name === 'rename' && isKeeping(call)) await syncPath(call.toPath)
    })
  },
  'commit before rename': () => {
    files(async (call, work) => {
      if (call.name === 'rename' && isKeeping(call)) setTimeout(renameSync, late, call.path, call.toPath)
      else await work()
    })
  },
  'commit without sync': () =>
    wrap(DatabaseSync.prototype, 'exec', function (original, args) {
      return original.call(this, String(args[0]).replace('synchronous = FULL', 'synchronous = OFF'))
    }),
  'offset before sync': () => {
    files(async (call, work) => {
      if (!syncs(call, 'part')) return await work()
      setTimeout(() => void syncPath(call.path).catch(() => undefined), late)
    })
  },
  'item after offset': () => {
    const offsets = new Map<unknown, unknown>()
    wrap(Worker.prototype, 'postMessage', function (original, args) {
      for (const { request } of Array.isArray(args[0]) ? args[0] : []) {
        if (request?.kind === 'move-upload') offsets.set(request.input.id, request.input.to)
        if (request?.kind !== 'finish-upload') continue
        const { id, item, expiresAt } = request.input
        const input = { id, from: offsets.get(id) ?? 0, to: item.size, expiresAt }
        original.call(this, [{ number: 0, request: { kind: 'move-upload', input } }])
        // Later, or both would be one transaction.
        setTimeout(() => original.apply(this, args), late)
        return
      }
      return original.apply(this, args)
    })
  },
} satisfies Record<ReturnType<typeof readBrokenOrder>, () => unknown>

if (isServer()) breaks[readBrokenOrder(process.env)]()
