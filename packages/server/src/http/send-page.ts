import { Readable } from 'node:stream'
import type { FastifyReply } from 'fastify'
import type { PageBody } from '../media/page-body.ts'

/** Sends a body chunk by chunk, as the client takes it; a slow reader holds no copy of it. */
export function sendPage(reply: FastifyReply, body: PageBody): FastifyReply {
  const chunks = body.chunks()[Symbol.iterator]()
  const first = chunks.next()
  if (!first.done && first.value.length === body.length) return reply.send(first.value)
  reply.header('content-length', body.length)
  if (reply.request.method === 'HEAD') return reply.send()
  return reply.send(Readable.from(body.chunks(), { objectMode: false }))
}
