import { UsageError } from '../command.ts'

/** Returns an id or the URL of an item unchanged. Throws UsageError for anything else, before any request. */
export function itemReference(text: string): string {
  // The last segment of the path is the id, perhaps with an extension.
  if (isId(text) || /\/media\/[\w~-][^/]*$/.test(urlOf(text)?.pathname ?? '')) return text
  throw notAnItem(text)
}

/** Returns an id or any URL of bytes unchanged. Throws UsageError for anything else, before any request. */
export function bytesReference(text: string): string {
  if (isId(text) || urlOf(text) !== null) return text
  throw notAnItem(text)
}

const isId = (text: string): boolean => /^[\w~-][\w.~=-]*$/.test(text)

/** Null if the text is no URL that the client accepts. */
function urlOf(text: string): URL | null {
  const url = URL.parse(text)
  return url !== null && /^https?:$/.test(url.protocol) && url.username + url.password === '' ? url : null
}

const notAnItem = (text: string): UsageError => {
  // The part of a URL before an @ may contain a password.
  const shown = /^https?:.*@/.test(text) ? 'A URL with a user name or password' : JSON.stringify(text)
  return new UsageError(`${shown} is neither the ID nor the URL of an item. See: mediabucket ls`)
}
