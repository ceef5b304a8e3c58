import { fetchBody, type UploadBody } from './upload-body.ts'
import type { Watch } from './watch.ts'

/** One request, without its redirects. */
interface Hop {
  readonly method: string
  readonly url: string
  readonly headers: Headers
  readonly body: UploadBody | undefined
  /** Only what carries no token may be redirected by the platform. */
  readonly redirect: 'manual' | 'follow'
}

/** Sends a request; rejects with a `ConnectionError`, or with the reason for which the watch was aborted. */
export type Transport = (hop: Hop, watch: Watch) => Promise<Response>

/** Sends by fetch. */
export function fetchTransport(fetch: typeof globalThis.fetch): Transport {
  return async ({ method, url, headers, body, redirect }, watch) => {
    const init = { method, headers, redirect, signal: watch.signal, credentials: 'omit' } as const
    if (!body) return await watch.during(() => fetch(url, init))

    const { content, onProgress } = body
    const sent = fetchBody(body, watch)
    if (sent instanceof ReadableStream) {
      // Told ahead, so that the service can refuse before it gets the bytes.
      if (content.size !== null) headers.set('content-length', String(content.size))
      const streaming = { ...init, body: sent, duplex: 'half' } as const
      return await watch.during(() => fetch(url, streaming))
    }
    // Here nobody tells whether bytes are moving, and a limit for the whole would kill slow uploads.
    const answer = await watch.during(() => fetch(url, { ...init, body: sent }), false)
    onProgress?.({ sent: sent.size, total: sent.size })
    return answer
  }
}
