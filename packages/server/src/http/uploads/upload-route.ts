import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Upload } from '../../catalog/uploads.ts'
import type { UploadParams } from '../openapi/request-schemas.ts'
import type { Caller } from '../tokens/authorizer.ts'

interface UploadExchange {
  readonly grant: Caller
  readonly request: FastifyRequest<{ Params: UploadParams }>
  readonly reply: FastifyReply
}

/** Responds to a request with a valid token to an upload of the token's bucket. */
export type UploadHandler = (upload: Upload, exchange: UploadExchange) => Promise<FastifyReply>
