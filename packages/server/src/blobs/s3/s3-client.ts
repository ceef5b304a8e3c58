import { Agent as HttpsAgent } from 'node:https'
import { S3Client } from '@aws-sdk/client-s3'
import type { S3Location } from '../../core/s3-location.ts'

// An import would load more: see core/node-http.ts.
const { Agent: HttpAgent } = process.getBuiltinModule('node:http')

/** Milliseconds until a connection must be established. */
const connectionTimeout = 3_000

/** Attempts for a request that can be repeated. */
const attempts = 3

/** Connections for uploads and short requests, and for downloads, whose clients may be slow. */
const maxSockets = 256
const maxDownloads = 4_096

/** The clients of one store. */
export interface S3Clients {
  /** Repeats requests, so only for those that have the same effect if they are repeated. */
  readonly repeating: S3Client
  readonly once: S3Client
  /** Has connections of its own, so that slow downloads delay no other request. Repeats requests. */
  readonly downloads: S3Client
  close(): void
}

/** Credentials come from the usual chain of the SDK, such as AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY. */
export function createS3Clients({ endpoint, region, pathStyle }: S3Location): S3Clients {
  const create = (maxAttempts: number, sockets: number) =>
    new S3Client({
      region,
      ...(endpoint !== null && { endpoint }),
      forcePathStyle: pathStyle,
      maxAttempts,
      // Otherwise the SDK sends checksums as trailers, which some stores refuse.
      requestChecksumCalculation: 'WHEN_REQUIRED',
      responseChecksumValidation: 'WHEN_REQUIRED',
      followRegionRedirects: true,
      requestHandler: {
        connectionTimeout,
        httpAgent: new HttpAgent({ keepAlive: true, maxSockets: sockets }),
        httpsAgent: new HttpsAgent({ keepAlive: true, maxSockets: sockets }),
      },
    })
  const repeating = create(attempts, maxSockets)
  const once = create(1, maxSockets)
  const downloads = create(attempts, maxDownloads)
  return {
    repeating,
    once,
    downloads,
    close() {
      for (const client of [repeating, once, downloads]) client.destroy()
    },
  }
}
