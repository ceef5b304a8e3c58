import { globSync } from 'node:fs'
import { unlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { errorCode } from '../../packages/server/src/core/faults.ts'
import { temporaryDirectory } from '../harness/directory.ts'
import { isRunning } from '../harness/processes.ts'
import { makeToken } from '../harness/token.ts'
import { until } from '../harness/until.ts'
import { listAll } from '../harness/upkeep.ts'
import type { Fault } from './fault.ts'
import { faultOnStage, must, type Stage } from './stage.ts'
import { startRawUpload, startResumableUpload } from './unfinished-uploads.ts'

/** Debian's libfaketime; null where it is not installed. */
export const fakeTime = (): string | null => globSync('/usr/lib/*/faketime/libfaketimeMT.so.1')[0] ?? null

const day = 86_400_000

/** Paths, since the port differs between servers. */
const listed = async ({ instance }: Stage) =>
  (await listAll(instance().server, instance().authorization)).map((url) => new URL(url).pathname)

async function moveClock(stage: Stage, move: (to: string) => Promise<void>, nth: number): Promise<void> {
  const { instance, clients, restart } = stage
  const days = nth % 2 === 1 ? 1 : -1
  await move('+0')
  await restart()
  const [lasting, brief] = await Promise.all([
    makeToken(instance().server, '--bucket', 'default', '--expires', '52w'),
    makeToken(instance().server, '--bucket', 'default', '--expires', '12h'),
  ])
  for (let count = 0; count < 5; count += 1) await clients.raw(instance())
  const inOrder = await listed(stage)
  const [raw, resumable] = [await startRawUpload(stage), await startResumableUpload(stage)]

  await move(days > 0 ? '+1d' : '-1d')
  await until('the clock of the service has moved', async () => {
    const { headers } = await fetch(`${instance().server.url}/healthz`)
    return Math.abs(Date.parse(headers.get('date') ?? '') - Date.now() - days * day) < 60_000
  })
  await raw.finish()
  await clients.form(instance())
  for (const again of ['before the restart', 'after the restart']) {
    if (again !== 'before the restart') await restart()
    const order = await listed(stage)
    must(
      `the order stays ${again}`,
      inOrder.every((path, index) => path === order[index]),
    )
    const statusOf = async ({ authorization }: typeof lasting) =>
      (await instance().server.request('/api/media', { headers: { authorization } })).status
    must('an unexpired token is valid', (await statusOf(lasting)) === 200)
    must('a token expires by the clock', (await statusOf(brief)) === (days > 0 ? 401 : 200))
  }
  // The start has removed expired uploads, but not those in progress.
  await resumable.finish()
  const order = await listed(stage)
  must(
    'later items are listed after earlier ones',
    inOrder.every((path, index) => path === order[index]),
  )
}

/** The paths of libfaketime's files. Their names end with the id of a process, which does not remove them if it is killed. */
const sharedMemory = (): string[] => globSync('/dev/shm/{sem.faketime_sem,faketime_shm}_*')

/** Removes libfaketime's files of ended processes, except those in `before`. */
async function removeSharedMemory(before: ReadonlySet<string>): Promise<void> {
  for (const path of sharedMemory()) {
    if (before.has(path) || isRunning(Number(path.split('_').at(-1)))) continue
    await unlink(path).catch((error: unknown) => {
      // EPERM: it is of another user. ENOENT: another run has removed it.
      if (!['EPERM', 'ENOENT'].includes(errorCode(error) ?? '')) throw error
    })
  }
}

export const movedClock: Fault = {
  title: 'the clock moves a day, forwards and backwards, while the server runs and across a restart',
  async run(rounds, onRound) {
    await using place = await temporaryDirectory()
    await using directory = await temporaryDirectory()
    const clock = join(place.path, 'clock')
    const move = (to: string) => writeFile(clock, `${to}\n`)
    await move('+0')
    const settings = {
      LD_PRELOAD: fakeTime() ?? '',
      FAKETIME_TIMESTAMP_FILE: clock,
      // Seconds between two reads of the file.
      FAKETIME_CACHE_DURATION: '1',
      FAKETIME_DONT_FAKE_MONOTONIC: '1',
      MEDIABUCKET_UPLOAD_EXPIRY: '7d',
    }
    const fault = faultOnStage(this.title, (stage, nth) => moveClock(stage, move, nth), {
      directory: directory.path,
      settings,
    })
    const before = new Set(sharedMemory())
    try {
      return await fault.run(rounds, onRound)
    } finally {
      await removeSharedMemory(before)
    }
  },
}
