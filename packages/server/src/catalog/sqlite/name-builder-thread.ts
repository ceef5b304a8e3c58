import { workerData } from 'node:worker_threads'
import { lowerOwnPriority } from '../../threads/lower-own-priority.ts'
import { type Outcome, serveBatches } from '../../threads/serve-batches.ts'
import type { NameTask } from '../names/index-tasks.ts'
import type { NewSegment } from '../names/segments.ts'
import { openConnection, readTimeout } from './connection.ts'
import { prepareBuildNames } from './name-builder.ts'
import { asFault } from './sqlite-errors.ts'

// The worker thread that builds the index of names for the server.

lowerOwnPriority()
const { directory }: { directory: string } = workerData
const db = openConnection(directory, readTimeout)
// Each read is of other pages, which the operating system caches.
db.exec('PRAGMA query_only = ON; PRAGMA cache_size = -4096')
const build = prepareBuildNames(db)

function buildOne(task: NameTask): Outcome<NewSegment> {
  try {
    return { output: build(task) }
  } catch (error) {
    return { error: asFault(error) }
  }
}

serveBatches<NameTask, NewSegment, null>(
  (tasks, reply) => {
    const outcomes = tasks.map(buildOne)
    const buffers = outcomes.flatMap((outcome) => ('output' in outcome ? [outcome.output.bytes.buffer] : []))
    reply(outcomes, null, buffers)
  },
  () => db.close(),
)
