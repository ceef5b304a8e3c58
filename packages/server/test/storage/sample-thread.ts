import { workerData } from 'node:worker_threads'
import { Fault } from '../../src/core/faults.ts'
import { type Outcome, serveBatches } from '../../src/storage/batch-threads.ts'

/** A worker for start-batch-thread.test.ts: each request names an action. */

if (workerData === 'throw') throw Object.assign(new Error('no such disk'), { code: 'ENODEV' })
if (workerData === 'exit') process.exit(7)

const outcomeOf = (request: string): Outcome<string> => {
  switch (request) {
    case 'system':
      return { error: Object.assign(new Error('no space'), { code: 'ENOSPC' }) }
    case 'sqlite':
      return { error: Object.assign(new Error('disk I/O error'), { errcode: 1034 }) }
    case 'fault':
      return {
        error: new Fault('storage-full', 'full', {
          parameters: [{ parameter: 'scope', detail: 'x' }],
          cause: Object.assign(new Error('no space'), { code: 'ENOSPC' }),
        }),
      }
    case 'text':
      return { error: 'only a text' }
    default:
      return { output: request.toUpperCase() }
  }
}

const released = Promise.withResolvers<void>()
let batch = 0
serveBatches<string, string, { batch: number; size: number }>(async (requests, reply) => {
  batch += 1
  const report = { batch, size: requests.length }
  if (requests.includes('die')) process.exit(3)
  if (requests.includes('throw')) throw new Error('the handler failed')
  if (requests.includes('release')) released.resolve()
  if (requests.includes('wait')) await released.promise
  reply(requests.map(outcomeOf), report)
  if (requests.includes('twice')) reply([], report)
})
