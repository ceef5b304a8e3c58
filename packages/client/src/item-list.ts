import type { CallOptions } from './client-options.ts'
import type { Endpoints } from './endpoints.ts'
import { ShapeError } from './errors/shape-error.ts'
import { type Media, mediaShape } from './media.ts'
import { acceptJson, jsonReader } from './read-json.ts'
import { type SendSettings, send } from './send.ts'
import { arrayOf, type Check, objectOf, parse, textOrNull } from './shape.ts'

/** The options of an iteration over media objects. */
export interface ItemOptions extends CallOptions {
  /** `oldest`, the default, is the order of upload, `newest` its reverse. */
  readonly order?: 'oldest' | 'newest' | undefined
  /** Only items of this kind. */
  readonly kind?: 'image' | 'video' | 'audio' | 'document' | 'other' | undefined
  /** Only items that were stored at this time or later. */
  readonly from?: Date | undefined
  /** Only items that were stored before this time. */
  readonly to?: Date | undefined
  /**
   * Only items whose filename contains every word of this text, in upper or lower case, with or without diacritics: up to 8 words and
   * 200 characters.
   */
  readonly name?: string | undefined
  /** Whether the URLs of a private bucket are signed. Signed ones need no token for 15 minutes or more. Default: as the bucket is set. */
  readonly urls?: 'plain' | 'signed' | undefined
  /** Items per request, from 1 to 500. Default: 100. */
  readonly batchSize?: number | undefined
}

interface ItemList {
  readonly data: readonly Media[]
  readonly next_cursor: string | null
}

const what = 'a list of items'
const shape: Check<ItemList> = objectOf<ItemList>({ data: arrayOf(mediaShape), next_cursor: textOrNull })
const readItemList = (response: unknown): ItemList => parse(what, shape, response)

/** Iterates over the media objects of a bucket. Throws a `TypeError` for an invalid time. */
export function iterateItems(
  settings: SendSettings,
  endpoints: Endpoints,
  options: ItemOptions,
): AsyncGenerator<Media, void, undefined> {
  return followCursors(settings, endpoints, parametersOf(options), options.signal)
}

async function* followCursors(
  settings: SendSettings,
  endpoints: Endpoints,
  parameters: URLSearchParams,
  signal: AbortSignal | undefined,
): AsyncGenerator<Media, void, undefined> {
  for (let cursor: string | null = null; ; ) {
    const { data, next_cursor }: ItemList = await send(settings, {
      method: 'GET',
      url: endpoints.items(parameters),
      headers: acceptJson,
      repeatable: true,
      signal,
      read: jsonReader(what, readItemList),
    })
    yield* data
    if (next_cursor === null) return
    if (next_cursor === cursor)
      throw new ShapeError(what, 'next_cursor', 'must not be the cursor of the request')
    cursor = next_cursor
    parameters.set('after', cursor)
  }
}

function parametersOf({ order, kind, from, to, name, urls, batchSize }: ItemOptions): URLSearchParams {
  const values = {
    order,
    kind,
    from: from && timeOf(from, 'from'),
    to: to && timeOf(to, 'to'),
    name,
    urls,
    limit: batchSize,
  }
  const parameters = new URLSearchParams()
  for (const [name, value] of Object.entries(values))
    if (value !== undefined) parameters.set(name, `${value}`)
  return parameters
}

function timeOf(time: Date, name: string): string {
  if (!(time instanceof Date) || Number.isNaN(time.getTime()))
    throw new TypeError(`${name} must be a valid date`)
  return time.toISOString()
}
