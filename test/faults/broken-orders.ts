import { renameSync } from 'node:fs'
import { open } from 'node:fs/promises'
import { DatabaseSync } from 'node:sqlite'
import { Worker } from 'node:worker_threads'
import { interceptWrites, isServer, wrap } from './intercept-writes.ts'
import { readBrokenOrder } from './orders.ts'
import type { FileCall } from './steps.ts'

// Loaded into a server like failpoints.ts: makes it sync, rename and commit in a wrong order, which the tests must
// detect.

/** Milliseconds by which an operation is delayed: more than the operations before it take on a busy machine. */
const late = 5_000

/** The number of a request whose response nobody waits for. Other numbers are used again, so the response would end another request. */
const unanswered = -1

/** Opens a handle of its own: the service has closed its handle by then. */
async function syncPath(path: string): Promise<void> {
  const handle = await open(path)
  await handle.sync()
  await handle.close()
}

const isFinalRename = (call: FileCall) => call.name === 'rename' && call.to === 'blob'
const syncs = (call: FileCall, ...places: FileCall['place'][]) =>
  call.name === 'sync' && places.includes(call.place)

const files = (file: (call: FileCall, work: () => Promise<void>) => Promise<void>) =>
  interceptWrites({ file, commit: (_, work) => work() })

const skipping = (isSkipped: (call: FileCall) => boolean) =>
  files(async (call, work) => {
    if (!isSkipped(call)) await work()
  })

const breaks = {
  'no sync of the file': () => skipping((call) => syncs(call, 'temporary', 'part')),
  'no sync of the directory': () => skipping((call) => syncs(call, 'shard')),
  'no sync of a new directory': () => skipping((call) => syncs(call, 'root')),
  'rename before sync': () => {
    files(async (call, work) => {
      if (syncs(call, 'temporary', 'part')) return
      await work()
      if (call.name === 'rename' && isFinalRename(call)) await syncPath(call.toPath)
    })
  },
  'rename before the intent': () =>
    wrap(Worker.prototype, 'postMessage', function (original, args) {
      for (const { number, request } of Array.isArray(args[0]) ? args[0] : []) {
        if (request?.kind !== 'addIntents') continue
        setTimeout(() => original.call(this, [{ number: unanswered, request }]), late)
        if (this instanceof Worker)
          return this.emit('message', { outcomes: [{ number, output: undefined }], report: 0 })
      }
      return original.apply(this, args)
    }),
  'commit before rename': () => {
    files(async (call, work) => {
      if (call.name === 'rename' && isFinalRename(call)) setTimeout(renameSync, late, call.path, call.toPath)
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
        if (request?.kind === 'moveUpload') offsets.set(request.input[0], request.input[2])
        if (request?.kind !== 'finishUpload') continue
        const [id, added, expiresAt] = request.input
        const input = [id, offsets.get(id) ?? 0, added.size, expiresAt]
        original.call(this, [{ number: unanswered, request: { kind: 'moveUpload', input } }])
        // Delayed, so that both are not part of one transaction.
        setTimeout(() => original.apply(this, args), late)
        return
      }
      return original.apply(this, args)
    })
  },
} satisfies Record<ReturnType<typeof readBrokenOrder>, () => unknown>

if (isServer()) breaks[readBrokenOrder(process.env)]()
