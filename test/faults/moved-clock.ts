import { globSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { temporaryDirectory } from '../harness/directory.ts'
import { makeToken } from '../harness/token.ts'
import { until } from '../harness/until.ts'
import { listAll } from '../harness/upkeep.ts'
import type { Fault } from './fault.ts'
import { faultOnStage, must, type Stage } from './stage.ts'
import { begunInPieces, halfSent } from './under-way.ts'

/** Debian's libfaketime; null where it is not installed. */
export const fakeTime = (): string | null => globSync('/usr/lib/*/faketime/libfaketimeMT.so.1')[0] ?? null

const day = 86_400_000

/** The paths of a page's media are the same under every port. */
const listed = async ({ life }: Stage) =>
  (await listAll(life().server, life().authorization)).map((url) => new URL(url).pathname)

async function moveClock(stage: Stage, move: (to: string) => Promise<void>, nth: number): Promise<void> {
  const { life, clients, restart } = stage
  const days = nth % 2 === 1 ? 1 : -1
  await move('+0')
  await restart()
  const [lasting, brief] = await Promise.all([
    makeToken(life().server, '--bucket', 'default', '--expires', '52w'),
    makeToken(life().server, '--bucket', 'default', '--expires', '12h'),
  ])
  for (let count = 0; count < 5; count += 1) await clients.raw(life())
  const inOrder = await listed(stage)
  const [raw, pieces] = [await halfSent(stage), await begunInPieces(stage)]

  await move(days > 0 ? '+1d' : '-1d')
  await until('the clock of the service has moved', async () => {
    const { headers } = await fetch(`${life().server.url}/healthz`)
    return Math.abs(Date.parse(headers.get('date') ?? '') - Date.now() - days * day) < 60_000
  })
  await raw.goOn()
  await clients.form(life())
  for (const again of ['in this life', 'in the next one']) {
    if (again !== 'in this life') await restart()
    const order = await listed(stage)
    must(
      `the order stays ${again}`,
      inOrder.every((path, index) => path === order[index]),
    )
    const statusOf = async ({ authorization }: typeof lasting) =>
      (await life().server.request('/api/media', { headers: { authorization } })).status
    must('a token that lasts is good', (await statusOf(lasting)) === 200)
    must('a token ends by the clock', (await statusOf(brief)) === (days > 0 ? 401 : 200))
  }
  // The start has swept; what is under way is none of its business.
  await pieces.goOn()
  const order = await listed(stage)
  must(
    'what came later stands behind it',
    inOrder.every((path, index) => path === order[index]),
  )
}

export const movedClock: Fault = {
  title: 'the clock moves a day, forth and back, while it runs and across a start',
  async run(rounds, onRound) {
    await using place = await temporaryDirectory()
    await using directory = await temporaryDirectory()
    const clock = join(place.path, 'clock')
    const move = (to: string) => writeFile(clock, `${to}\n`)
    await move('+0')
    const settings = {
      LD_PRELOAD: fakeTime() ?? '',
      FAKETIME_TIMESTAMP_FILE: clock,
      // Seconds between two looks at the file.
      FAKETIME_CACHE_DURATION: '1',
      FAKETIME_DONT_FAKE_MONOTONIC: '1',
      MEDIABUCKET_UPLOAD_EXPIRY: '7d',
    }
    const fault = faultOnStage(this.title, (stage, nth) => moveClock(stage, move, nth), {
      directory: directory.path,
      settings,
    })
    return await fault.run(rounds, onRound)
  },
}
