import { temporaryDirectory } from '../harness/directory.ts'
import { movedClock } from '../harness/moved-clock.ts'
import { makeToken } from '../harness/token.ts'
import { until } from '../harness/until.ts'
import { listAll } from '../harness/upkeep.ts'
import type { Fault } from './fault.ts'
import { faultOnStage, must, type Stage } from './stage.ts'
import { startRawUpload, startResumableUpload } from './unfinished-uploads.ts'

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

export const clockMoves: Fault = {
  title: 'the clock moves a day, forwards and backwards, while the server runs and across a restart',
  async run(rounds, onRound) {
    await using clock = await movedClock()
    await using directory = await temporaryDirectory()
    const fault = faultOnStage(this.title, (stage, nth) => moveClock(stage, clock.move, nth), {
      directory: directory.path,
      settings: { ...clock.settings, MEDIABUCKET_UPLOAD_EXPIRY: '7d' },
    })
    return await fault.run(rounds, onRound)
  },
}
