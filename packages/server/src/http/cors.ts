import cors from '@fastify/cors'
import type { FastifyInstance } from 'fastify'

/** Lets pages of the configured origins call the service, and no others (docs/interface.md C1, C2). */
export async function allowOrigins(app: FastifyInstance, origins: readonly string[]): Promise<void> {
  if (origins.length === 0) return
  await app.register(cors, {
    origin: [...origins],
    methods: ['GET', 'HEAD', 'POST', 'DELETE'],
    allowedHeaders: [
      'Authorization',
      'Content-Type',
      'Content-Disposition',
      'If-None-Match',
      'If-Match',
      'If-Range',
      'Range',
    ],
    exposedHeaders: [
      'ETag',
      'Location',
      'Content-Range',
      'Content-Disposition',
      'Accept-Ranges',
      'Retry-After',
      'Link',
      'WWW-Authenticate',
    ],
    maxAge: 7200,
    strictPreflight: false,
  })
}

/** A `Vary` that names what the answer depends on, the origin included where origins are told apart. */
export const varyOn = (origins: readonly string[], ...names: string[]): string =>
  [...(origins.length > 0 && !origins.includes('*') ? ['Origin'] : []), ...names].join(', ')
