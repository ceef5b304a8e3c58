import { join } from 'node:path'
import { withFailpoints } from './preload.ts'
import { faultOnStage, must } from './stage.ts'
import { readReached, type StepName, steps } from './steps.ts'
import { type SystemCall, traceServer } from './system-calls.ts'

/** Steps at which a call fails that an answer depends on. */
const failing: readonly StepName[] = [
  'file written',
  'before the file is synced',
  'before the rename',
  'before the directory is synced',
  'before the item is committed',
  'item committed',
  'upload begun',
  'piece written',
  'before the piece is synced',
  'before the offset is committed',
  'before the last piece is renamed',
  'before the upload is finished',
  'before the row is removed',
]

/** Each step fails once in the life of one server; so does one request for each, and nothing else. */
export const failingCalls = faultOnStage(
  'EIO and ENOSPC at each step: the Nth write, syncs, renames, commits',
  async ({ clients, directory, restart }, nth) => {
    const failpoints = failing.map((step, index) => ({
      step,
      nth: nth + index,
      // A disk that is full is told before a commit, never after it.
      action: (index + nth) % 2 === 0 || step === 'item committed' ? ('EIO' as const) : ('ENOSPC' as const),
    }))
    const life = await restart(withFailpoints(...failpoints))
    let reached: string[] = []
    for (const by of ['upload', 'pieces', 'removal'] as const) {
      // One file each: in a form one file may fail and another one after the answer.
      const send = { upload: clients.raw, pieces: clients.pieces, removal: clients.remove }[by]
      const isDone = () => failing.every((step) => steps[step].by !== by || reached.includes(step))
      for (let tries = 0; tries < 200 && !isDone(); tries += 1) {
        const status = await send(life)
        const before = reached.length
        reached = readReached(directory)
        const failed = reached.slice(before).join(', ')
        must(
          `a disk that fails at ${failed || 'no step'} is told by ${status}`,
          (failed !== '') === status >= 500,
        )
      }
      must(`every failpoint of ${by} is reached`, isDone())
    }
  },
)

const pathOf = ({ args }: SystemCall) => /^\d+<([^>]*)>/.exec(args)?.[1] ?? ''

/** Every sync of the process fails for a while, by the system: no file whose sync has failed is synced again or kept. */
export const failingSyncs = faultOnStage('fsync fails, of blobs and of the log', async (stage) => {
  const { clients, life, directory } = stage
  {
    await using trace = await traceServer(life().server, { inject: 'fsync:error=EIO' })
    // Small files fail earlier, at the sync of their directory's entry. Of so many forms one has a large file.
    const forms = Array.from({ length: 12 }, () => clients.form)
    for (const way of [clients.raw, ...forms, clients.pieces]) {
      const status = await way(life())
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
    await using trace = await traceServer(life().server, { inject: 'fsync,fdatasync:error=EIO:when=1', path })
    const status = await clients.raw(life())
    must(`a commit that cannot be synced is a 5xx, not ${status}`, status >= 500)
    must(
      'the sync of the log has failed',
      (await trace.calls()).some(({ result, name }) => /sync$/.test(name) && result < 0),
    )
  }
  for (const way of [clients.raw, clients.form]) must('it is stored again', (await way(life())) === 201)
  await stage.restart()
})
