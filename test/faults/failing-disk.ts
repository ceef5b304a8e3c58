import { join } from 'node:path'
import { withFailpoints } from './preload.ts'
import { faultOnStage, must } from './stage.ts'
import { readReached, type StepName, steps } from './steps.ts'
import { type SystemCall, traceServer } from './system-calls.ts'

/** Steps at which a failing call must fail the request. */
const failing: readonly StepName[] = [
  'file written',
  'before the file is synced',
  'before the intent is committed',
  'before the rename',
  'before the directory is synced',
  'before the item is committed',
  'item committed',
  'upload created',
  'chunk written',
  'before the chunk is synced',
  'before the offset is committed',
  'before the last chunk is renamed',
  'before the upload is finished',
  'before the row is removed',
]

/** Each step fails once on one server. Exactly one request fails for each. */
export const failingCalls = faultOnStage(
  'EIO and ENOSPC at each step: the Nth write, syncs, renames, commits',
  async ({ clients, directory, restart }, nth) => {
    const failpoints = failing.map((step, index) => ({
      step,
      nth: nth + index,
      // SQLite reports a full disk before a commit, never after it.
      action: (index + nth) % 2 === 0 || step === 'item committed' ? ('EIO' as const) : ('ENOSPC' as const),
    }))
    const instance = await restart(withFailpoints(...failpoints))
    let reached: string[] = []
    for (const by of ['upload', 'resumable', 'removal'] as const) {
      // One file each: in a form a second file may fail after the response to the first failure.
      const send = { upload: clients.raw, resumable: clients.resumable, removal: clients.remove }[by]
      const isDone = () => failing.every((step) => steps[step].by !== by || reached.includes(step))
      for (let tries = 0; tries < 200 && !isDone(); tries += 1) {
        const status = await send(instance)
        const before = reached.length
        reached = readReached(directory)
        const failed = reached.slice(before).join(', ')
        must(
          `a request receives a 5xx only if a step failed (${failed || 'none'}): ${status}`,
          (failed !== '') === status >= 500,
        )
      }
      must(`every failpoint of ${by} is reached`, isDone())
    }
  },
)

const pathOf = ({ args }: SystemCall) => /^\d+<([^>]*)>/.exec(args)?.[1] ?? ''

/** strace makes every fsync of the process fail: no file whose sync failed is synced again or stored. */
export const failingSyncs = faultOnStage(
  'fsync fails, for blobs and for the write-ahead log',
  async (stage) => {
    const { clients, instance, directory } = stage
    {
      await using trace = await traceServer(instance().server, { inject: 'fsync:error=EIO' })
      // Small files fail earlier, at the sync of their directory. With this many forms, one has a large file.
      const forms = Array.from({ length: 12 }, () => clients.form)
      for (const way of [clients.raw, ...forms, clients.resumable]) {
        const status = await way(instance())
        must(`an upload that cannot be synced is a 5xx, not ${status}`, status >= 500)
      }
      const calls = await trace.calls()
      const failed = calls.filter(({ name, result }) => name === 'fsync' && result < 0).map(pathOf)
      const files = failed.filter((path) => /\/(tmp|uploads)\/[^/]+$/.test(path))
      must('syncs of files have failed', files.length > 0)
      must('a sync that failed is not tried again', new Set(files).size === files.length)
      const renamed = calls.filter(({ name }) => name.startsWith('rename'))
      must(
        'no file is kept whose sync has failed',
        !files.some((path) => renamed.some(({ args }) => args.includes(`"${path}"`))),
      )
      must(
        'files whose sync has failed are dropped',
        files.every((path) =>
          calls.some(({ name, args }) => name.startsWith('unlink') && args.includes(`"${path}"`)),
        ),
      )
    }
    {
      const path = join(directory, 'catalog.db-wal')
      await using trace = await traceServer(instance().server, {
        inject: 'fsync,fdatasync:error=EIO:when=1',
        path,
      })
      const status = await clients.raw(instance())
      must(`a commit that cannot be synced is a 5xx, not ${status}`, status >= 500)
      must(
        'the sync of the log has failed',
        (await trace.calls()).some(({ result, name }) => /sync$/.test(name) && result < 0),
      )
    }
    for (const way of [clients.raw, clients.form])
      must('uploads succeed afterwards', (await way(instance())) === 201)
    await stage.restart()
  },
)
