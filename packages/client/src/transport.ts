import type { AttemptTimer } from './attempt-timer.ts'
import { fetchBody, type UploadBody } from './upload-body.ts'

/** One request, without its redirects. */
interface Hop {
  readonly method: string
  readonly url: string
  readonly headers: Headers
  readonly body: UploadBody | undefined
  /** The platform follows redirects only of requests without the token. */
  readonly redirect: 'manual' | 'follow'
}

/** Sends a request. Rejects with a `ConnectionError`, or with the reason of `timer.signal`. */
export type Transport = (hop: Hop, timer: AttemptTimer) => Promise<Response>

/** Sends with fetch. */
export function fetchTransport(fetch: typeof globalThis.fetch): Transport {
  return async ({ method, url, headers, body, redirect }, timer) => {
    const init = { method, headers, redirect, signal: timer.signal, credentials: 'omit' } as const
    if (!body) return await timer.during(() => fetch(url, init))

    const { content, onProgress } = body
    const sent = fetchBody(body, timer)
    if (sent instanceof ReadableStream) {
      // With the length, the service can refuse an upload before its bytes arrive.
      if (content.size !== null) headers.set('content-length', String(content.size))
      const streaming = { ...init, body: sent, duplex: 'half' } as const
      return await timer.during(() => fetch(url, streaming))
    }
    // No timeout: fetch reports no upload progress here, and a limit for the whole request would abort slow uploads.
    const response = await timer.during(() => fetch(url, { ...init, body: sent }), false)
    onProgress?.({ sent: sent.size, total: sent.size })
    return response
  }
}
