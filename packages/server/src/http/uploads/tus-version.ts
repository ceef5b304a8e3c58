import type { FastifyReply, FastifyRequest } from 'fastify'
import { Fault } from '../../core/fault.ts'

export const tusVersion = '1.0.0'

/**
 * On every response of the routes. tus 1.0.0, Core: "The Tus-Resumable header MUST be included in every request and response
 * except for OPTIONS requests."
 */
export const versionHeader = { 'tus-resumable': tusVersion }

/** Throws Fault `upload-version-unsupported`. */
export function requireVersion({ headers }: Pick<FastifyRequest, 'headers'>, reply: FastifyReply): void {
  if (headers['tus-resumable'] === tusVersion) return
  // tus 1.0.0, Core: "If the version specified by the Client is not supported by the Server, it MUST respond with the 412
  // Precondition Failed status and MUST include the Tus-Version header into the response. In addition, the Server MUST NOT
  // process the request."
  reply.header('tus-version', tusVersion)
  throw new Fault('upload-version-unsupported', `Send the header Tus-Resumable: ${tusVersion}.`)
}
