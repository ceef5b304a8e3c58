import type { CallOptions } from './client-options.ts'
import { type CursorPage, cursorPageOf, followCursors, sendJson } from './json.ts'
import type { Labels } from './labels.ts'
import type { ItemKind, ListOrder } from './list-rules.ts'
import { type Media, mediaShape } from './media.ts'
import type { SendSettings } from './send.ts'
import { parse } from './shape.ts'
import type { Endpoints } from './urls.ts'

/** The options of an iteration over media objects. */
export interface ItemOptions extends CallOptions {
  /**
   * `oldest`, the default, is the order of upload, `newest` its reverse. `taken` is the order in which pictures and videos were taken, with the
   * time of the upload where that is unknown, and `taken-desc` its reverse; then `from` and `to` select by this time. `name` is the order of the filenames
   * without case and diacritics, in which numbers have their values, and `name-desc` its reverse.
   */
  readonly order?: ListOrder | undefined
  /** Only items of this kind. */
  readonly kind?: ItemKind | undefined
  /** Only items that were stored at this time or later. */
  readonly from?: Date | undefined
  /** Only items that were stored before this time. */
  readonly to?: Date | undefined
  /**
   * Only items whose filename contains every word of this text, in upper or lower case, with or without diacritics: up to 8 words and
   * 200 characters.
   */
  readonly name?: string | undefined
  /** With the order `name` or `name-desc`, the filename at which the list begins. */
  readonly startName?: string | undefined
  /** Whether the URLs have the names of the items. Default: as the service is set. */
  readonly names?: boolean | undefined
  /** Only items that have all these labels, up to 8. */
  readonly labels?: Labels | undefined
  /** Only items with these bytes: their SHA-256 in hex. */
  readonly sha256?: string | undefined
  /** Only items whose path begins with this text, in the order of their paths. An empty text selects all items with a path. */
  readonly path?: string | undefined
  /**
   * Only items whose key, for programs that speak S3, begins with this text, in the order of their keys. An empty text selects all items with a
   * key. Not with the orders `taken` and `name`.
   */
  readonly key?: string | undefined
  /** Whether the items have the member `key`. Default: only with `key`. */
  readonly keys?: boolean | undefined
  /** Whether the URLs of a private bucket are signed. Signed ones need no token for 15 minutes or more. Default: as the bucket is set. */
  readonly urls?: 'plain' | 'signed' | undefined
  /** Items per request, from 1 to 500. Default: 100. */
  readonly batchSize?: number | undefined
}

/** The options of one response of a list. */
export interface ItemPageOptions extends ItemOptions {
  /** The `next_cursor` of the response before, with the same other options. Default: the start of the list. */
  readonly after?: string | null | undefined
}

/** One response of a list. It can have fewer items than `batchSize`, and a `next_cursor`. */
export interface ItemPage {
  readonly data: readonly Media[]
  /** Null if no items follow. */
  readonly next_cursor: string | null
}

const what = 'a list of items'
const pageShape = cursorPageOf(mediaShape)

/** Fetches one response of a list. Throws a `TypeError` for an invalid time. */
export function fetchItemPage(
  settings: SendSettings,
  endpoints: Endpoints,
  { after, signal, ...options }: ItemPageOptions,
): Promise<CursorPage<Media>> {
  const parameters = parametersOf(options)
  if (after != null) parameters.set('after', after)
  return sendJson(settings, {
    url: endpoints.items(parameters),
    signal,
    what,
    read: (value) => parse(what, pageShape, value),
  })
}

/** Iterates over the media objects of a bucket. Throws a `TypeError` for an invalid time. */
export function iterateItems(
  settings: SendSettings,
  endpoints: Endpoints,
  options: ItemOptions,
): AsyncGenerator<Media, void, undefined> {
  return followCursors(settings, {
    url: endpoints.items(parametersOf(options)),
    what,
    item: mediaShape,
    signal: options.signal,
  })
}

function parametersOf({
  names,
  order,
  kind,
  from,
  to,
  name,
  startName,
  labels,
  sha256,
  path,
  key,
  keys,
  urls,
  batchSize,
}: ItemOptions): URLSearchParams {
  const values = {
    order,
    kind,
    from: from && timeOf(from, 'from'),
    to: to && timeOf(to, 'to'),
    name,
    start_name: startName,
    sha256,
    path,
    key,
    ...(keys === undefined ? {} : { keys: keys ? 'on' : 'off' }),
    urls,
    ...(names === undefined ? {} : { names: names ? 'on' : 'off' }),
    limit: batchSize,
  }
  const parameters = new URLSearchParams()
  for (const [name, value] of Object.entries(values))
    if (value !== undefined) parameters.set(name, `${value}`)
  for (const [key, value] of Object.entries(labels ?? {})) parameters.set(`label.${key}`, value)
  return parameters
}

function timeOf(time: Date, name: string): string {
  if (!(time instanceof Date) || Number.isNaN(time.getTime()))
    throw new TypeError(`${name} must be a valid date`)
  return time.toISOString()
}
