import { lowerOwnPriority } from '../../threads/lower-own-priority.ts'
import { serveBatches } from '../../threads/serve-batches.ts'
import type { BuilderInput } from './builder.ts'
import { buildSegment, mergeSegments, type NewSegment } from './segments.ts'

// The worker thread that builds the index of names from rows and segments that another thread reads.

lowerOwnPriority()

serveBatches<BuilderInput, NewSegment, null>((inputs, reply) => {
  const segments = inputs.map((input) =>
    'rows' in input ? buildSegment(input.first, input.rows) : mergeSegments(input.parts),
  )
  reply(
    segments.map((output) => ({ output })),
    null,
    segments.map(({ bytes }) => bytes.buffer),
  )
})
