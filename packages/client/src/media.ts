import type { CallOptions } from './client-options.ts'
import { AnswerError } from './errors.ts'
import { acceptJson, sendJson, sendTagged } from './json.ts'
import { readNothing } from './responses.ts'
import { type SendSettings, send } from './send.ts'
import {
  arrayOf,
  type Check,
  count,
  countOrNull,
  number,
  numberOrNull,
  objectOf,
  optional,
  orNull,
  parse,
  recordOf,
  text,
  textOrNull,
} from './shape.ts'
import { type Endpoints, mediaIdOf } from './urls.ts'

/** The URLs of the variants of an item. A service may have further sizes than these two. */
export interface Variants {
  readonly thumb: string
  readonly medium: string
  readonly [name: string]: string
}

/** Pixels. */
interface Dimensions {
  readonly width: number
  readonly height: number
}

/** The dimensions of the variants of an item. */
export interface VariantSizes {
  readonly thumb: Dimensions
  readonly medium: Dimensions
  readonly [name: string]: Dimensions
}

/** A point of a picture as it is displayed, from 0 to 1 of its width and its height. */
export interface Focus {
  readonly x: number
  readonly y: number
}

/** One item, as on the wire. */
export interface Media {
  readonly id: string
  /** The URL of its bytes. */
  readonly url: string
  readonly filename: string | null
  readonly content_type: string
  /** Bytes. */
  readonly size: number
  /** Hex. */
  readonly sha256: string
  /** RFC 3339, UTC. */
  readonly created_at: string
  /** RFC 3339, UTC; null if the item does not expire. Earlier versions of the service do not send it. */
  readonly expires_at?: string | null | undefined
  /** Pixels; null if unknown. */
  readonly width: number | null
  /** Pixels; null if unknown. */
  readonly height: number | null
  /** A text that replaces the picture where it is not shown. Earlier versions of the service do not send it, nor `caption`. */
  readonly alt_text?: string | null | undefined
  readonly caption?: string | null | undefined
  /** Data of the app: up to 16 keys with their values. Earlier versions of the service do not send it. */
  readonly labels?: Readonly<Record<string, string>> | undefined
  /**
   * When the picture or the video was taken, by the clock of the camera: `2018-07-19T18:02:11.000+02:00`, without an offset if the file does not
   * state it; null if unknown. Earlier versions of the service do not send it.
   */
  readonly taken_at?: string | null | undefined
  /** The path of the file within the folder that was uploaded; null for other files. Earlier versions of the service do not send it. */
  readonly path?: string | null | undefined
  /** The point of the picture that sizes keep that cut; null for none. Earlier versions of the service do not send it. */
  readonly focus?: Focus | null | undefined
  /** A placeholder of the picture (ThumbHash) in Base64; null if there is none yet. Earlier versions of the service do not send it. */
  readonly thumbhash?: string | null | undefined
  /** Of a video, in seconds; null if unknown. Earlier versions of the service do not send it. */
  readonly duration?: number | null | undefined
  /** URLs of smaller pictures by the names of their sizes; null if the type of the item has none. Earlier versions of the service do not send them. */
  readonly variants?: Variants | null | undefined
  /** Null if there are no variants, or `width` and `height` are unknown. Earlier versions of the service do not send it. */
  readonly variant_sizes?: VariantSizes | null | undefined
  /** The key for programs that speak S3; null for none. Only in lists with the option `key` or `keys`. */
  readonly key?: string | null | undefined
}

const dimensions = objectOf<Dimensions>({ width: count, height: count })

export const mediaShape: Check<Media> = objectOf<Media>({
  id: text,
  url: text,
  filename: textOrNull,
  content_type: text,
  size: count,
  sha256: text,
  created_at: text,
  expires_at: optional(textOrNull),
  width: countOrNull,
  height: countOrNull,
  alt_text: optional(textOrNull),
  caption: optional(textOrNull),
  labels: optional(recordOf(text)),
  path: optional(textOrNull),
  focus: optional(orNull(objectOf<Focus>({ x: number, y: number }))),
  taken_at: optional(textOrNull),
  thumbhash: optional(textOrNull),
  duration: optional(numberOrNull),
  variants: optional(orNull(objectOf<Variants>({ thumb: text, medium: text }))),
  variant_sizes: optional(orNull(objectOf<VariantSizes>({ thumb: dimensions, medium: dimensions }))),
  key: optional(textOrNull),
})

/** Reads the media object from a response. Throws a `ShapeError` that names the invalid field. */
export const readMedia = (response: unknown): Media => parse('a media object', mediaShape, response)

const manyShape: Check<{ data: readonly Media[] }> = objectOf<{ data: readonly Media[] }>({
  data: arrayOf(mediaShape),
})

/** Reads the media objects from the response to a form with several files, in the order of the files. */
export const readManyMedia = (response: unknown): readonly Media[] =>
  parse('media objects', manyShape, response).data

export interface DescribeOptions extends CallOptions {
  /** Whether the URLs of a private bucket are signed. Signed ones need no token for 15 minutes or more. Default: as the bucket is set. */
  readonly urls?: 'plain' | 'signed' | undefined
  /** Whether the URLs have the name of the item. Default: as the service is set. */
  readonly names?: boolean | undefined
}

/** A media object and its `ETag`, null if the service sends none. */
export interface TaggedMedia {
  readonly media: Media
  readonly etag: string | null
}

/** Fetches the media object of an item, with its `ETag`. */
export async function describeTagged(
  settings: SendSettings,
  endpoints: Endpoints,
  id: string,
  { signal, urls, names }: DescribeOptions,
): Promise<TaggedMedia> {
  const parameters = new URLSearchParams({
    ...(urls === undefined ? {} : { urls }),
    ...(names === undefined ? {} : { names: names ? 'on' : 'off' }),
  })
  const url = endpoints.item(id) + (parameters.size === 0 ? '' : `?${parameters}`)
  const { value, etag } = await sendTagged(settings, { url, signal, what: 'a media object', read: readMedia })
  return { media: value, etag }
}

export const describeMedia = async (...call: Parameters<typeof describeTagged>): Promise<Media> =>
  (await describeTagged(...call)).media

/** Changes of an item. Members that are left out stay as they are, null removes a text or the focus. */
export interface MediaChanges {
  readonly filename?: string | null | undefined
  readonly alt_text?: string | null | undefined
  readonly caption?: string | null | undefined
  /** Labels to set, and with null those to remove. Others stay as they are. */
  readonly labels?: Readonly<Record<string, string | null>> | undefined
  /** The point of the picture that sizes keep that cut. */
  readonly focus?: Focus | null | undefined
}

export interface UpdateOptions extends CallOptions {
  /** The `ETag` of the media object, from `describeTagged`: the item is changed only if it still has this one. */
  readonly ifMatch?: string | undefined
}

/** Changes an item. With `ifMatch` it is not retried, because the first attempt changes the ETag. */
export const updateMedia = (
  settings: SendSettings,
  endpoints: Endpoints,
  id: string,
  changes: MediaChanges,
  { ifMatch, signal }: UpdateOptions,
): Promise<Media> =>
  sendJson(settings, {
    method: 'PATCH',
    url: endpoints.item(id),
    headers: {
      'content-type': 'application/merge-patch+json',
      ...(ifMatch === undefined ? {} : { 'if-match': ifMatch }),
    },
    json: changes,
    repeatable: ifMatch === undefined,
    signal,
    what: 'a media object',
    read: readMedia,
  })

/** Deletes an item. Resolves if there is no such item because an earlier attempt may have deleted it. */
export async function deleteMedia(
  settings: SendSettings,
  endpoints: Endpoints,
  id: string,
  { signal }: CallOptions,
): Promise<void> {
  let mayBeDeletedByUs = false
  try {
    await send(settings, {
      method: 'DELETE',
      url: endpoints.item(id),
      headers: acceptJson,
      repeatable: true,
      signal,
      onUncertain: () => {
        mayBeDeletedByUs = true
      },
      read: readNothing,
    })
  } catch (error) {
    const isMissing = error instanceof AnswerError && error.status === 404
    if (!isMissing || !mayBeDeletedByUs) throw error
  }
}

/** The result of a deletion of many items: ids and URLs as they were given. */
export interface DeletedItems {
  readonly deleted: readonly string[]
  /** The bucket has no such items. */
  readonly missing: readonly string[]
}

/** The ids of a request that were found, and the others. */
export interface RequestResult {
  readonly done: readonly string[]
  readonly missing: readonly string[]
}

/** The most ids that the service accepts in one request. */
export const maxIds = 500

const deletedShape: Check<DeletedItems> = objectOf<DeletedItems>({
  deleted: arrayOf(text),
  missing: arrayOf(text),
})

function readDeleted(value: unknown): RequestResult {
  const { deleted, missing } = parse('deleted items', deletedShape, value)
  return { done: deleted, missing }
}

export interface DeleteOptions extends CallOptions {
  /**
   * For ids of some of the items, the id of the item that replaces it: the key of the deleted item, for programs that speak S3, passes to it in the
   * same transaction. Requires `media:write` too.
   */
  readonly replacedBy?: Readonly<Record<string, string>> | undefined
}

/** Deletes items with one request for each 500. Throws a `TypeError` for anything else than ids and URLs of items. */
export async function deleteMany(
  settings: SendSettings,
  endpoints: Endpoints,
  references: readonly (string | URL)[],
  { replacedBy, ...options }: DeleteOptions,
): Promise<DeletedItems> {
  const successors = new Map(Object.entries(replacedBy ?? {}))
  const membersOf = (ids: readonly string[]) => {
    const some = ids.filter((id) => successors.has(id)).map((id) => [id, successors.get(id)])
    return some.length === 0 ? {} : { replaced_by: Object.fromEntries(some) }
  }
  const target = { method: 'DELETE', url: endpoints.uploads, membersOf } as const
  const { done, missing } = await requestByIds(settings, target, references, options)
  return { deleted: done, missing }
}

/** The result of a change of the labels of many items: ids and URLs as they were given. */
export interface LabelledItems {
  readonly labelled: readonly string[]
  /** The bucket has no such items. */
  readonly missing: readonly string[]
}

const labelledShape: Check<LabelledItems> = objectOf<LabelledItems>({
  labelled: arrayOf(text),
  missing: arrayOf(text),
})

/** Changes the labels of items with one request for each 500. Throws a `TypeError` for anything else than ids and URLs of items. */
export async function labelMany(
  settings: SendSettings,
  endpoints: Endpoints,
  references: readonly (string | URL)[],
  labels: Readonly<Record<string, string | null>>,
  options: CallOptions,
): Promise<LabelledItems> {
  const { done, missing } = await requestByIds(
    settings,
    {
      ...{ method: 'PATCH', url: endpoints.uploads, members: { labels } },
      read(value) {
        const { labelled, missing } = parse('labelled items', labelledShape, value)
        return { done: labelled, missing }
      },
    },
    references,
    options,
  )
  return { labelled: done, missing }
}

/** Sends the ids of these items, 500 in one request. Returns ids and URLs as they were given. */
export async function requestByIds(
  settings: SendSettings,
  target: {
    readonly method: 'DELETE' | 'PATCH' | 'POST'
    readonly url: string
    /** Of the body, besides the ids. */
    readonly members?: Readonly<Record<string, unknown>>
    /** More members of the body with these ids. */
    readonly membersOf?: (ids: readonly string[]) => Readonly<Record<string, unknown>>
    readonly read?: (value: unknown) => RequestResult
  },
  references: readonly (string | URL)[],
  { signal }: CallOptions,
): Promise<RequestResult> {
  const { method, url, members = {}, membersOf = () => ({}), read = readDeleted } = target
  const idsByReference = new Map(references.map((reference) => [String(reference), mediaIdOf(reference)]))
  const ids = [...new Set(idsByReference.values())]
  const missing = new Set<string>()
  for (let start = 0; start < ids.length; start += maxIds) {
    let mayBeDone = false
    const some = ids.slice(start, start + maxIds)
    const result = await sendJson(settings, {
      method,
      url,
      json: { ids: some, ...members, ...membersOf(some) },
      repeatable: true,
      signal,
      onUncertain: () => {
        mayBeDone = true
      },
      what: 'the result for items',
      read,
    })
    // An earlier attempt may have done what a later one reports as missing.
    if (!mayBeDone) for (const id of result.missing) missing.add(id)
  }
  const given = [...idsByReference]
  return {
    done: given.filter(([, id]) => !missing.has(id)).map(([reference]) => reference),
    missing: given.filter(([, id]) => missing.has(id)).map(([reference]) => reference),
  }
}
