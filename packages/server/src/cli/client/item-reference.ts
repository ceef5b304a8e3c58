import { UsageError } from '../command.ts'
import type { ClientContext } from './client-command.ts'

/** Returns an id or the URL of an item unchanged. Throws UsageError for anything else, before any request. */
export function itemReference(text: string): string {
  // The last segment of the path is the id, perhaps with an extension, as the client requires it.
  if (isId(text) || /\/media\/[\w~-][\w~=-]*(?:\.[^/]*)?$/.test(urlOf(text)?.pathname ?? '')) return text
  throw notAnItem(text)
}

/** Returns an id or any URL of bytes unchanged. Throws UsageError for anything else, before any request. */
export function bytesReference(text: string): string {
  if (isId(text) || urlOf(text) !== null) return text
  throw notAnItem(text)
}

/**
 * The URL of an item at the service at MEDIABUCKET_URL, which receives the token, if the given URL is one that the service returns
 * under its own base URL; otherwise the given reference.
 */
export async function ownUrl(
  reference: string,
  { url, probe, interrupted }: Pick<ClientContext, 'url' | 'probe' | 'interrupted'>,
): Promise<string> {
  const given = urlOf(reference)
  const [, id] = /\/media\/([^/.]+)(?:\.[^/]*)?$/.exec(given?.pathname ?? '') ?? []
  if (given === null || id === undefined || given.origin === new URL(url).origin) return reference
  try {
    const item = new URL((await probe.describe(id, { signal: interrupted })).url)
    if (item.origin !== given.origin || item.pathname !== given.pathname) return reference
    const { origin, pathname } = new URL(url)
    return `${origin}${pathname.replace(/(\/(api|v1)\/media)?\/*$/, '')}/media/${id}${given.search}`
  } catch (error) {
    interrupted.throwIfAborted()
    // The service does not know the item, or is not available.
    if (error instanceof Error) return reference
    throw error
  }
}

const isId = (text: string): boolean => /^[\w~-][\w.~=-]*$/.test(text)

/** Null if the text is no URL that the client accepts. */
function urlOf(text: string): URL | null {
  const url = URL.parse(text)
  if (url === null || hasCredentials(url)) return null
  // URL.parse ignores white space at the start; the client does not.
  return /^https?:/i.test(text) ? url : null
}

const hasCredentials = ({ username, password }: URL): boolean => username + password !== ''

/** An error that contains the text, unless that may contain a password. */
export function notAnItem(text: string): UsageError {
  const url = URL.parse(text)
  if (url !== null && hasCredentials(url))
    return new UsageError('The URL of an item must not contain a user name or password')
  // The part of a malformed URL before an @ may contain a password.
  const shown = text.includes('@') && urlOf(text) === null ? 'An argument with an @' : JSON.stringify(text)
  return new UsageError(`${shown} is neither the ID nor the URL of an item. See: mediabucket ls`)
}
