import type { FastifyInstance } from 'fastify'
import type { Metrics } from './metrics.ts'

/** Counts the active upload requests of a scope, from their headers to the end of their responses. */
export function countUploads(
  scope: FastifyInstance,
  { activeUploads }: Pick<Metrics, 'activeUploads'>,
): void {
  scope.addHook('onRequest', async ({ method }, { raw }) => {
    if (method !== 'POST' && method !== 'PATCH') return
    activeUploads.inc()
    raw.once('close', () => activeUploads.dec())
  })
}
