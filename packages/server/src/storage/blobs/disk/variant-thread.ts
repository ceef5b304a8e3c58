import { workerData } from 'node:worker_threads'
import { lowerOwnPriority, serveBatches } from '../../batch-threads.ts'
import { releaseInBackground } from '../../sqlite.ts'
import { ServerVariants, type VariantOutput, type VariantRequest } from './variant-database.ts'

// The worker thread that owns the server's connection to `variants.db`, so that no read of the disk stalls the requests.

lowerOwnPriority()
const { directory }: { directory: string } = workerData
let damage: string | null = null
const variants = new ServerVariants(directory, (error) => {
  damage = error.message
})

// Its first call creates the database, before the thread is ready.
const stopReleasing = releaseInBackground(() => variants.releaseSpace())

serveBatches<VariantRequest, VariantOutput, string | null>(
  (requests, reply) => {
    const outcomes = variants.apply(requests)
    const buffers = outcomes.flatMap((outcome) =>
      'output' in outcome && outcome.output instanceof Uint8Array ? [outcome.output.buffer] : [],
    )
    reply(outcomes, damage, buffers)
    damage = null
  },
  () => {
    stopReleasing()
    variants.close()
  },
)
