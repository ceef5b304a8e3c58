import type { IncomingMessage, RequestListener } from 'node:http'
import type { NewMedia } from '../../catalog/records.ts'
import type { UrlSettings } from '../../core/media-url.ts'
import { describeMedia } from '../../media/describe-media.ts'
import type { StoreMedia } from '../../media/store-media.ts'
import type { StoreSmallFile } from '../../media/store-small-file.ts'
import type { BodyReader, WholeBodyReader } from '../bodies/body-reader.ts'
import { discardUnreadBody } from '../bodies/unread-bodies.ts'
import { isMultipartForm } from '../forms/boundary.ts'
import { rawFileHeaders, readRawFile } from '../forms/raw-file.ts'
import type { CorsPolicy } from '../headers/cors.ts'
import { itemExpiryOf } from '../headers/item-expiry.ts'
import { countHeader } from '../headers/raw-headers.ts'
import { listingPaths } from '../listing/list-media.ts'
import type { Metrics } from '../metrics/metrics.ts'
import type { DirectRoute, DirectServer } from '../problems/serve-directly.ts'
import type { Authorizer } from '../tokens/authorizer.ts'
import { locationOf, requestKey, storedHeaders } from './store-media.ts'

// The framework, its streams and async generators take twice as much CPU time as storing a small file. So an upload of one small
// file as a raw body bypasses them. A test compares the responses of both paths.

export interface UploadFastPathParts {
  readonly storeSmallFile: StoreSmallFile
  readonly storeMedia: StoreMedia
  readonly authorize: Authorizer
  readonly readBody: BodyReader
  readonly readWholeBody: WholeBodyReader
  /** The maximum size of a small file. Bytes. */
  readonly smallFileSize: number
  readonly direct: DirectServer
  readonly corsHeaders: CorsPolicy
  readonly urlSettings: UrlSettings
  readonly metrics: Pick<Metrics, 'activeUploads' | 'uploadedItems' | 'uploadedBytes'>
  /** While the service stops, responses must close their connections, which the framework does. */
  readonly isStopping: () => boolean
}

/** Files are uploaded to the paths of the listing. */
const routes: ReadonlyMap<string, DirectRoute> = new Map(
  listingPaths.map((url) => [url, { url, problemHeaders: {} }]),
)

/** Stores small files that are sent as raw bodies, and passes all other requests to `framework`. */
export function createUploadFastPath(
  parts: UploadFastPathParts,
  framework: RequestListener,
): RequestListener {
  const { storeSmallFile, storeMedia, authorize, readBody, readWholeBody, smallFileSize } = parts
  const { direct, corsHeaders, urlSettings, metrics, isStopping } = parts

  async function store(request: IncomingMessage, requestId: string): Promise<NewMedia> {
    const grant = await authorize({ raw: request, id: requestId }, 'media:write')
    const key = requestKey(request, grant)
    const headers = rawFileHeaders(request)
    const expiresAt = itemExpiryOf(request, grant, key !== null)
    // Null if the memory for bodies is used up. Then the body is streamed.
    const bytes = await readWholeBody(request)
    const { media, repeated } =
      bytes === null
        ? await storeMedia(grant, readRawFile(request, readBody), {
            by: grant.actor,
            key,
            expiresAt,
            ...sizeOf(request),
          })
        : await storeSmallFile(grant, { ...headers, bytes, expiresAt }, key, grant.actor)
    const [item] = media
    if (item === undefined) throw new Error('an upload has stored no item')
    if (!repeated) {
      metrics.uploadedItems.inc()
      metrics.uploadedBytes.inc(item.size)
    }
    return item
  }

  return (request, response) => {
    const route = request.method === 'POST' ? routes.get(request.url ?? '') : undefined
    if (!route || isStopping() || !isPlainUpload(request, smallFileSize)) return framework(request, response)
    discardUnreadBody(request, response)
    metrics.activeUploads.inc()
    response.once('close', () => metrics.activeUploads.dec())
    // Null if the request was refused: then the response has been sent.
    const requestId = direct.begin(route, request, response)
    if (requestId === null) return
    void direct.run(route, request, response, requestId, async () => {
      const media = describeMedia(urlSettings, await store(request, requestId))
      const body = JSON.stringify(media)
      response.writeHead(201, {
        ...corsHeaders(request.headers),
        ...storedHeaders,
        location: locationOf(urlSettings, media),
        'content-type': 'application/json; charset=utf-8',
        'content-length': Buffer.byteLength(body),
      })
      response.end(body)
    })
  }
}

function sizeOf({ headers }: IncomingMessage): { declaredBytes: number; atMost: number } {
  const size = Number(headers['content-length'])
  return { declaredBytes: size, atMost: size }
}

/** The values of Content-Type that the framework accepts. It refuses other ones. */
const mediaType = /^[\w!#$%&'*+.^`|~-]+\/[\w!#$%&'*+.^`|~-]+(?:;|$)/

/** False for requests that need the framework, such as forms, empty bodies, bodies without a length, and requests with `Expect`. */
function isPlainUpload(request: IncomingMessage, maxSize: number): boolean {
  const { headers } = request
  const size = Number(headers['content-length'] ?? 0)
  if (size === 0 || size > maxSize) return false
  if (headers['transfer-encoding'] !== undefined || headers['content-encoding'] !== undefined) return false
  if (headers.expect !== undefined || headers['service-worker'] !== undefined) return false
  const type = headers['content-type']
  if (type !== undefined && (!mediaType.test(type) || isMultipartForm(type))) return false
  // `headers` does not show whether a header is repeated.
  return countHeader(request, 'host') === 1 && countHeader(request, 'content-type') <= 1
}
