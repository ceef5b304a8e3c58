import type { IncomingMessage } from 'node:http'
import { Fault } from '../../core/fault.ts'

/** The host that a request names: that of the base URL, that of the media base URL, or another one. */
type HostRole = 'main' | 'media' | 'other'

export interface MediaHost {
  /**
   * Returns the URL to redirect to for bytes requested from the main host, null for all other requests.
   * Throws Fault `route-unknown` for anything but bytes on the media host (docs/interface.md B11).
   */
  readonly redirectUrl: (request: IncomingMessage, isBytes: boolean) => string | null
}

/** Separates the host of API and gallery from the host of bytes. Returns null where they are one. */
export function createMediaHost(baseUrl: string, mediaBaseUrl: string): MediaHost | null {
  if (mediaBaseUrl === baseUrl) return null
  const mainUrl = new URL(baseUrl)
  const mediaUrl = new URL(mediaBaseUrl)

  /** `other` occurs behind a proxy that changes Host. Such requests are served, since refusing them would lock everyone out. */
  function roleOf({ headers: { host = '' } }: IncomingMessage): HostRole {
    if (isSameHost(host, mediaUrl)) return 'media'
    return isSameHost(host, mainUrl) ? 'main' : 'other'
  }

  return {
    redirectUrl(request, isBytes) {
      const role = roleOf(request)
      if (role === 'media' && !isBytes)
        throw new Fault('route-unknown', 'This host serves only the bytes of items.')
      const isRead = request.method === 'GET' || request.method === 'HEAD'
      const path = /\/media\/.*$/s.exec(request.url ?? '')?.[0]
      return role === 'main' && isBytes && isRead && path !== undefined ? mediaBaseUrl + path : null
    },
  }
}

/** Whether a Host header names the host and port of a URL; the default port of its scheme may be left out. */
export function isSameHost(host: string, url: URL): boolean {
  const candidate = `${url.protocol}//${host}`
  return URL.canParse(candidate) && new URL(candidate).host === url.host
}
