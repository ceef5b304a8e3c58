import { httpUrl } from './http-url.ts'

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

/** The id in the path of a URL of an item's bytes; null if it has none. */
export const itemIdIn = (pathname: string): string | null =>
  validId(/\/media\/([^/.]+)(?:\.[^/]*)?$/.exec(pathname)?.[1] ?? '')

const validId = (id: string): string | null => (idShape.test(id) ? id : null)

/** The URL itself, or the URL of an id. Throws a `TypeError` for any other value. */
export const mediaUrlOf = (reference: string | URL, urlOfId: (id: string) => string): string =>
  isUrl(reference) ? httpUrl(reference, 'the URL of an item').href : urlOfId(mediaIdOf(reference))
