import { once } from 'node:events'
import { openConnection } from '../harness/connection.ts'
import { until } from '../harness/until.ts'
import { faultOnStage, must } from './stage.ts'
import { startRawUpload, startResumableUpload } from './unfinished-uploads.ts'

/** Milliseconds; far more than the upload needs on a busy machine. */
const deadline = 60_000

/** A raw upload in progress completes, a resumable upload keeps its offset, and new connections are refused. */
export const stopBySignal = faultOnStage('SIGTERM during uploads', async (stage) => {
  const instance = await stage.restart({ MEDIABUCKET_SHUTDOWN_TIMEOUT: `${deadline}ms` })
  const { process, url } = instance.server
  const [raw, resumable] = [await startRawUpload(stage), await startResumableUpload(stage)]
  const exited = once(process, 'exit')
  const startedAt = performance.now()
  process.kill('SIGTERM')
  await until('connections are refused', () =>
    openConnection(url).then(
      (connection) => connection[Symbol.dispose](),
      () => true,
    ),
  )
  await raw.finish()
  const [code] = await exited
  must(`it exits with 0, not ${code}`, code === 0)
  must('it exits within its deadline', performance.now() - startedAt < 2 * deadline)
  await stage.restart()
  await resumable.finish()
})
