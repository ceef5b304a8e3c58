import type { CallOptions } from './client-options.ts'
import { sendJson } from './json.ts'
import { maxIds } from './media.ts'
import type { SendSettings } from './send.ts'
import { arrayOf, type Check, objectOf, parse, text } from './shape.ts'
import type { Endpoints } from './urls.ts'
import { mediaIdOf } from './urls.ts'

/** What a link returns, and for how long. */
export interface LinkOptions extends CallOptions {
  /**
   * The lifetime in seconds. By default the URL is valid for 15 to 30 minutes, and the same for requests within a quarter of an hour,
   * so that caches can use it.
   */
  readonly expiresIn?: number | undefined
  /**
   * A smaller picture, by the name of its size. With `*`, the link returns the bytes, and every smaller picture with `&variant=«name»` or `&w=«width»`
   * after it. By default it returns the bytes.
   */
  readonly variant?: string | undefined
  /** Whether browsers save the file instead of showing it. */
  readonly download?: boolean | undefined
  /** Whether the URL has the name of the item. Default: as the service is set. */
  readonly names?: boolean | undefined
}

/** A signed URL, which needs no token until it expires. Use it unchanged. */
export interface Link {
  readonly url: string
  /** RFC 3339, UTC. */
  readonly expires_at: string
}

/** Links of several items. */
export interface Links {
  /** By the ids and URLs as they were given. */
  readonly urls: ReadonlyMap<string, string>
  /** Ids and URLs as they were given, of which the bucket has no item. */
  readonly missing: readonly string[]
  /** RFC 3339, UTC: when the first of the links expires. */
  readonly expires_at: string
}

interface LinkList {
  readonly links: readonly { readonly id: string; readonly url: string }[]
  readonly expires_at: string
}

const linkShape: Check<Link> = objectOf<Link>({ url: text, expires_at: text })
const listShape: Check<LinkList> = objectOf<LinkList>({
  links: arrayOf(objectOf<{ id: string; url: string }>({ id: text, url: text })),
  expires_at: text,
})
const bodyOf = ({ expiresIn, variant, download, names }: LinkOptions) => ({
  expires_in: expiresIn,
  variant,
  download,
  names,
})

/** Creates a link. Nothing is stored, so it can be repeated. */
export const createLink = (
  settings: SendSettings,
  endpoints: Endpoints,
  reference: string | URL,
  options: LinkOptions,
): Promise<Link> =>
  sendJson(settings, {
    method: 'POST',
    url: `${endpoints.item(mediaIdOf(reference))}/links`,
    json: bodyOf(options),
    repeatable: true,
    signal: options.signal,
    what: 'a link',
    read: (value) => parse('a link', linkShape, value),
  })

/** Creates links with one request for each 500 items. Throws a `TypeError` for anything else than ids and URLs of items. */
export async function createLinks(
  settings: SendSettings,
  endpoints: Endpoints,
  references: readonly (string | URL)[],
  options: LinkOptions,
): Promise<Links> {
  const idsByReference = new Map(references.map((reference) => [String(reference), mediaIdOf(reference)]))
  const ids = [...new Set(idsByReference.values())]
  const urls = new Map<string, string>()
  const expiries: string[] = []
  for (let start = 0; start < ids.length; start += maxIds) {
    const { links, expires_at } = await sendJson(settings, {
      method: 'POST',
      url: endpoints.links,
      json: { ids: ids.slice(start, start + maxIds), ...bodyOf(options) },
      repeatable: true,
      signal: options.signal,
      what: 'links',
      read: (value) => parse('links', listShape, value),
    })
    for (const { id, url } of links) urls.set(id, url)
    expiries.push(expires_at)
  }
  const found = [...idsByReference].flatMap(([reference, id]) => {
    const url = urls.get(id)
    return url === undefined ? [] : [[reference, url] as const]
  })
  return {
    urls: new Map(found),
    missing: [...idsByReference].filter(([, id]) => !urls.has(id)).map(([reference]) => reference),
    expires_at: [...expiries].sort()[0] ?? new Date().toISOString(),
  }
}
