import { httpUrl } from './http-url.ts'

/** Where the parts of a service are. */
export interface Endpoints {
  readonly origin: string
  /** The listing exactly as it was given, or at `/api/media` below a base URL. */
  readonly listing: string
  readonly page: (number: number) => string
  readonly uploads: string
  /** Uploads in pieces. */
  readonly pieces: string
  readonly item: (id: string) => string
  readonly bytes: (id: string) => string
  readonly bucket: string
  readonly token: string
}

/**
 * Finds the service from its base URL, which may have a path of its own, or from the listing's URL on either path.
 * Throws a `TypeError` for what is neither.
 */
export function locate(given: string | URL): Endpoints {
  const url = httpUrl(given, 'url')
  url.searchParams.delete('page')
  if (url.search !== '') throw new TypeError('url must not have a query other than page')

  const [, prefix] = /^(.*)\/(?:api|v1)\/media\/?$/.exec(url.pathname) ?? []
  const base = `${url.origin}${(prefix ?? url.pathname).replace(/\/+$/, '')}`
  const listing = prefix === undefined ? `${base}/api/media` : `${url.origin}${url.pathname}`
  return {
    origin: url.origin,
    listing,
    page: (number) => `${listing}?page=${number}`,
    uploads: `${base}/api/media`,
    pieces: `${base}/api/uploads`,
    item: (id) => `${base}/api/media/${id}`,
    bytes: (id) => `${base}/media/${id}`,
    bucket: `${base}/api/bucket`,
    token: `${base}/api/token`,
  }
}
