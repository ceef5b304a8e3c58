import { extname } from 'node:path'
import { startBatchThread } from '../../threads/start-batch-thread.ts'
import { startOnDemand } from '../../threads/start-on-demand.ts'
import { openExistingVariants, type VariantOutput, type VariantRequest } from './variant-database.ts'

/** Runs requests on `variants.db`. */
export interface VariantRequests {
  run(request: VariantRequest): Promise<VariantOutput>
  close(): Promise<void>
}

/** For commands: on this thread. */
export function openDirectVariants(directory: string): VariantRequests {
  const variants = openExistingVariants(directory)
  return {
    async run(request) {
      const [outcome] = variants.apply([request])
      if (outcome === undefined) return null
      if ('error' in outcome) throw outcome.error
      return outcome.output
    },
    async close() {
      variants.close()
    },
  }
}

/**
 * For the server: a worker thread runs all requests that have arrived together. `onDamage` receives the reason why all variants
 * were lost.
 */
export function createVariantThread(directory: string, onDamage: (reason: string) => void): VariantRequests {
  // The extension is .ts in the sources and .js in the published build.
  const file = new URL(`./variant-thread${extname(import.meta.url)}`, import.meta.url)
  const thread = startOnDemand((onFailure) =>
    startBatchThread<VariantRequest, VariantOutput, string | null>({
      file,
      name: 'variants',
      workerData: { directory },
      onReport(damage) {
        if (damage !== null) onDamage(damage)
      },
      onFailure,
    }),
  )
  return {
    run: (request) => new Promise((resolve, reject) => thread.send(request, { resolve, reject })),
    close: thread.close,
  }
}
