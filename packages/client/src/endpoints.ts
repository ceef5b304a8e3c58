import { httpUrl } from './http-url.ts'

/** The URLs of a service. */
export interface Endpoints {
  readonly origin: string
  /** The listing: exactly the given URL, or `/api/media` below a base URL. */
  readonly listing: string
  readonly page: (number: number) => string
  readonly uploads: string
  readonly resumableUploads: string
  readonly item: (id: string) => string
  readonly bytes: (id: string) => string
  readonly items: (parameters: URLSearchParams) => string
  /** The page of the trash after this cursor; the first page for null. */
  readonly trash: (cursor: string | null) => string
  readonly restore: string
  readonly links: string
  readonly bucket: string
  readonly token: string
  readonly tokens: string
}

/**
 * Derives the URLs of a service from its base URL, which may have a path, or from the URL of its listing. Throws a
 * `TypeError` for any other value.
 */
export function endpointsOf(given: string | URL): Endpoints {
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
    resumableUploads: `${base}/api/uploads`,
    item: (id) => `${base}/api/media/${id}`,
    bytes: (id) => `${base}/media/${id}`,
    items: (parameters) => `${base}/api/items?${parameters}`,
    trash: (cursor) => `${base}/api/trash${cursor === null ? '' : `?after=${encodeURIComponent(cursor)}`}`,
    restore: `${base}/api/trash/restore`,
    links: `${base}/api/links`,
    bucket: `${base}/api/bucket`,
    token: `${base}/api/token`,
    tokens: `${base}/api/tokens`,
  }
}
