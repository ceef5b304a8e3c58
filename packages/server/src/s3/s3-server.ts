import type { Server } from 'node:http'
import type { Fault } from '../core/faults.ts'
import type { CachedBytesOperations } from '../downloads/bytes-cache.ts'
import type { DownloadLog } from '../downloads/download-log.ts'
import { Backpressure, createWholeBodyReader } from '../http/bodies.ts'
import { serializeResponse } from '../http/client-connections.ts'
import type { HttpContext } from '../http/context.ts'
import type { FaultReporter } from '../http/problems.ts'
import type { RequestLogger } from '../http/request-log.ts'
import { createHttpServer } from '../http/server.ts'
import type { UnreadBytes } from '../http/unread-bytes.ts'
import { Authenticator } from './authentication.ts'
import { documentMemory } from './documents.ts'
import { ObjectResponder } from './object-response.ts'
import type { S3Operations } from './s3-context.ts'
import { errorDocument, S3Dispatcher } from './s3-dispatcher.ts'
import { s3ErrorOf } from './s3-errors.ts'

/** Creates the HTTP server of the S3 protocol, ready to listen. */
export function createS3Server(
  http: HttpContext,
  operations: S3Operations & Pick<CachedBytesOperations, 'openBytes' | 'openVariant'>,
  parts: {
    readonly host: string | null
    readonly downloadLog: DownloadLog | null
    readonly logRequest: RequestLogger
    readonly reportFault: FaultReporter
    readonly unread: UnreadBytes
  },
): Server {
  const { host, downloadLog, logRequest, reportFault, unread } = parts
  const { settings, log, metrics, limits, corsHeaders } = http
  const dispatcher = new S3Dispatcher(
    {
      ...{ http, operations, reportFault },
      responder: new ObjectResponder(http, operations, downloadLog),
      readDocumentBytes: createWholeBodyReader(new Backpressure(documentMemory), documentMemory),
    },
    {
      ...{ host, logRequest },
      authenticator: new Authenticator({ accessKeys: operations.accessKeys, limits, now: Date.now }),
    },
  )
  return createHttpServer((request, response) => dispatcher.dispatch(request, response), {
    ...{ settings, log, metrics, unread, corsHeaders },
    serializeFault: serializeError,
  })
}

/** An error as a complete response, for connections without a request. */
function serializeError(fault: Fault, requestId: string) {
  const error = s3ErrorOf(fault)
  const body = Buffer.from(errorDocument(error, '/', requestId))
  const headers = { 'content-type': 'application/xml', 'content-length': `${body.byteLength}` }
  return serializeResponse(
    error.status,
    { ...headers, 'x-amz-request-id': requestId, ...error.headers },
    body,
  )
}
