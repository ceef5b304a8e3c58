import type { Client } from '@mediabucket/client'
import { type ClientContext, isResponseError } from './client-command.ts'
import { UsageError } from './command.ts'

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

/**
 * Throws UsageError if one of these references of items is the URL of another service, of which a copy may have an item with the same id. The URLs
 * that the service returns begin with its base URL, which can differ from that of the command.
 */
export async function requireOwnUrls(
  references: readonly unknown[],
  { url, probe, interrupted }: Pick<ClientContext, 'url' | 'probe' | 'interrupted'>,
): Promise<void> {
  const own = new URL(url).origin
  const isElsewhere = (reference: unknown) =>
    typeof reference === 'string' && (urlOf(reference)?.origin ?? own) !== own
  if (!references.some(isElsewhere)) return
  const returned = await originOfItems(probe, interrupted)
  for (const reference of references) {
    const origin = typeof reference === 'string' ? urlOf(reference)?.origin : undefined
    if (origin === undefined || origin === own || origin === returned) continue
    const services = returned === null || returned === own ? own : `${own}, with items at ${returned}`
    throw new UsageError(
      `${reference} is a URL of ${origin}, and the service of the command is ${services}. Name the service with --url or --profile, or the item by its ID`,
    )
  }
}

/** Where the URLs of items begin that the service returns; null if it has no items, or none for this token. */
async function originOfItems(probe: Client, signal: AbortSignal): Promise<string | null> {
  try {
    for (const items of [probe.items({ batchSize: 1, signal }), probe.trash({ signal })])
      for await (const { url } of items) return new URL(url).origin
  } catch (error) {
    signal.throwIfAborted()
    if (!isResponseError(error) || error.status !== 403) throw error
  }
  return null
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
