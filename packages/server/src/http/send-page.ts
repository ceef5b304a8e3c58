import { Readable } from 'node:stream'
import type { FastifyReply } from 'fastify'
import type { PageBody } from '../media/page-body.ts'

/** Sends a body chunk by chunk as the client takes it, so that a slow reader holds no copy of it. */
export function sendPage(reply: FastifyReply, body: PageBody | null): FastifyReply {
  if (body === null || reply.request.method === 'HEAD') return reply.send()
  const { whole } = body
  return reply.send(
    whole === null ? Readable.from(body.chunks(), { objectMode: false }) : Buffer.from(whole, 'latin1'),
  )
}
