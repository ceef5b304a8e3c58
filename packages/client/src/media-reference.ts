import { httpUrl } from './http-url.ts'

/** An id is opaque and URL-safe. This allows only one segment of a path. */
const idShape = /^[\w~-][\w.~=-]*$/

const isUrl = (reference: string | URL): boolean =>
  reference instanceof URL || /^[a-z][a-z0-9+.-]*:/i.test(reference)

/** The id in an id or in the URL of an item's bytes, with or without extension. Throws a `TypeError` for any other value. */
export function mediaIdOf(reference: string | URL): string {
  const id = isUrl(reference)
    ? /\/media\/([^/.]+)(?:\.[^/]*)?$/.exec(httpUrl(reference, 'the URL of an item').pathname)?.[1]
    : String(reference)
  if (id === undefined || !idShape.test(id))
    throw new TypeError('expected a media id, or a URL that ends in /media/<id>')
  return id
}

/** The URL itself, or the URL of an id. Throws a `TypeError` for any other value. */
export const mediaUrlOf = (reference: string | URL, urlOfId: (id: string) => string): string =>
  isUrl(reference) ? httpUrl(reference, 'the URL of an item').href : urlOfId(mediaIdOf(reference))
