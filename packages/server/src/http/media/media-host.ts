import type { IncomingMessage, RequestListener } from 'node:http'
import { Fault } from '../../core/fault.ts'

/** Which of the two hosts a request names; `other` where a proxy names neither. */
type Side = 'main' | 'media' | 'other'

export interface MediaHost {
  /**
   * Null for a request that its host serves; the URL to redirect to for bytes requested from the main host.
   * Throws Fault `route-unknown` for everything but bytes on the media host (docs/interface.md B11).
   */
  readonly check: (request: IncomingMessage, isBytes: boolean) => string | null
  /** Sends a request to the media host past `first`, which serves the main host alone. */
  readonly split: (first: RequestListener, others: RequestListener) => RequestListener
}

/** Keeps API and gallery on the host of one URL and bytes on that of the other. Null where bytes have no host of their own. */
export function createMediaHost(baseUrl: string, mediaBaseUrl: string | null): MediaHost | null {
  if (mediaBaseUrl === null) return null
  const main = new URL(baseUrl)
  const media = new URL(mediaBaseUrl)

  /** With a proxy that passes another Host, everything is served: refusing would leave no way in. */
  function sideOf({ headers: { host = '' } }: IncomingMessage): Side {
    if (sameHost(host, media)) return 'media'
    return sameHost(host, main) ? 'main' : 'other'
  }

  return {
    check(request, isBytes) {
      const side = sideOf(request)
      if (side === 'media' && !isBytes)
        throw new Fault('route-unknown', 'This host serves the bytes of items alone.')
      const isRead = request.method === 'GET' || request.method === 'HEAD'
      const path = /\/media\/.*$/s.exec(request.url ?? '')?.[0]
      return side === 'main' && isBytes && isRead && path !== undefined ? mediaBaseUrl + path : null
    },
    split: (first, others) => (request, response) =>
      (sideOf(request) === 'media' ? others : first)(request, response),
  }
}

/** Whether a Host header names the host and port of a URL, whose port may be the default of its scheme. */
export function sameHost(host: string, url: URL): boolean {
  const named = `${url.protocol}//${host}`
  return URL.canParse(named) && new URL(named).host === url.host
}
