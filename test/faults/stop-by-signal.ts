import { once } from 'node:events'
import { openConnection } from '../harness/connection.ts'
import { until } from '../harness/until.ts'
import { faultOnStage, must } from './stage.ts'
import { begunInPieces, halfSent } from './under-way.ts'

const deadline = 5_000

/** A short upload ends well, one in pieces keeps its offset, and nothing new begins. */
export const stopBySignal = faultOnStage('SIGTERM during uploads', async (stage) => {
  const life = await stage.restart({ MEDIABUCKET_SHUTDOWN_TIMEOUT: `${deadline}ms` })
  const { process, url } = life.server
  const [raw, pieces] = [await halfSent(stage), await begunInPieces(stage)]
  const exited = once(process, 'exit')
  const begun = performance.now()
  process.kill('SIGTERM')
  await until('connections are refused', () =>
    openConnection(url).then(
      (connection) => connection[Symbol.dispose](),
      () => true,
    ),
  )
  await raw.goOn()
  const [code] = await exited
  must(`it exits with 0, not ${code}`, code === 0)
  must('it exits within its deadline', performance.now() - begun < deadline + 5_000)
  await stage.restart()
  await pieces.goOn()
})
