/** A new URL object, or null if the text is not a URL. (Node.js 20 has no `URL.parse`.) */
export function parseUrl(text: string | URL, base?: string): URL | null {
  try {
    return new URL(text, base)
  } catch {
    return null
  }
}

/** An http or https URL without credentials; throws a `TypeError` that does not contain the URL, because it may contain a secret. */
export function httpUrl(text: string | URL, name: string): URL {
  const url = parseUrl(text)
  if (!url || !/^https?:$/.test(url.protocol))
    throw new TypeError(`${name} must be an absolute http or https URL`)
  if (url.username || url.password) throw new TypeError(`${name} must not contain a user name or password`)
  url.hash = ''
  return url
}

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
  readonly changes: (parameters: URLSearchParams) => string
  readonly labels: (parameters: URLSearchParams) => string
  readonly trash: string
  readonly restore: string
  readonly links: string
  readonly bucket: string
  readonly token: string
  readonly tokens: string
  readonly webhooks: string
  readonly buckets: string
  readonly usage: string
  readonly keys: string
  readonly events: (parameters: URLSearchParams) => string
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
    changes: (parameters) => `${base}/api/changes?${parameters}`,
    labels: (parameters) => `${base}/api/labels?${parameters}`,
    trash: `${base}/api/trash`,
    restore: `${base}/api/trash/restore`,
    links: `${base}/api/links`,
    bucket: `${base}/api/bucket`,
    token: `${base}/api/token`,
    tokens: `${base}/api/tokens`,
    webhooks: `${base}/api/webhooks`,
    buckets: `${base}/api/buckets`,
    usage: `${base}/api/usage`,
    keys: `${base}/api/keys`,
    events: (parameters) => `${base}/api/audit?${parameters}`,
  }
}

/** Sets the parameters that are given in the query of a URL. */
export function withParameters(
  given: string,
  parameters: Readonly<Record<string, string | number | undefined>>,
): string {
  const url = new URL(given)
  for (const [name, value] of Object.entries(parameters))
    if (value !== undefined) url.searchParams.set(name, `${value}`)
  return url.href
}

/** An id is opaque and URL-safe. This allows only one segment of a path. */
const idShape = /^[\w~-][\w.~=-]*$/

const isUrl = (reference: string | URL): boolean =>
  reference instanceof URL || /^[a-z][a-z0-9+.-]*:/i.test(reference)

/** The id in an id or in the URL of an item's bytes, with or without extension. Throws a `TypeError` for any other value. */
export function mediaIdOf(reference: string | URL): string {
  const id = isUrl(reference)
    ? itemIdIn(httpUrl(reference, 'the URL of an item').pathname)
    : validId(String(reference))
  if (id === null) throw new TypeError('expected a media id, or a URL that ends in /media/<id>')
  return id
}

/** The id in the path of a URL of an item's bytes, with or without a name; null if it has none. */
export const itemIdIn = (pathname: string): string | null =>
  validId(/\/media\/([^/.]+)(?:\.[^/]*|\/[^/]+)?$/.exec(pathname)?.[1] ?? '')

const validId = (id: string): string | null => (idShape.test(id) ? id : null)

/** The URL itself, or the URL of an id. Throws a `TypeError` for any other value. */
export const mediaUrlOf = (reference: string | URL, urlOfId: (id: string) => string): string =>
  isUrl(reference) ? httpUrl(reference, 'the URL of an item').href : urlOfId(mediaIdOf(reference))
