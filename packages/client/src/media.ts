import {
  arrayOf,
  type Check,
  count,
  countOrNull,
  numberOrNull,
  objectOf,
  optional,
  orNull,
  parse,
  text,
  textOrNull,
} from './shape.ts'

/** The URLs of the variants of an item. A service may have further sizes than these two. */
export interface Variants {
  readonly thumb: string
  readonly medium: string
  readonly [name: string]: string
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
  /** Hex; null for items that have no bytes. */
  readonly sha256: string | null
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
  /** A placeholder of the picture (ThumbHash) in Base64; null if there is none yet. Earlier versions of the service do not send it. */
  readonly thumbhash?: string | null | undefined
  /** Of a video, in seconds; null if unknown. Earlier versions of the service do not send it. */
  readonly duration?: number | null | undefined
  /** URLs of smaller pictures by the names of their sizes; null if the type of the item has none. Earlier versions of the service do not send them. */
  readonly variants?: Variants | null | undefined
}

export const mediaShape: Check<Media> = objectOf<Media>({
  id: text,
  url: text,
  filename: textOrNull,
  content_type: text,
  size: count,
  sha256: textOrNull,
  created_at: text,
  expires_at: optional(textOrNull),
  width: countOrNull,
  height: countOrNull,
  alt_text: optional(textOrNull),
  caption: optional(textOrNull),
  thumbhash: optional(textOrNull),
  duration: optional(numberOrNull),
  variants: optional(orNull(objectOf<Variants>({ thumb: text, medium: text }))),
})

/** Reads the media object from a response. Throws a `ShapeError` that names the invalid field. */
export const readMedia = (response: unknown): Media => parse('a media object', mediaShape, response)

const manyShape: Check<{ data: readonly Media[] }> = objectOf<{ data: readonly Media[] }>({
  data: arrayOf(mediaShape),
})

/** Reads the media objects from the response to a form with several files, in the order of the files. */
export const readManyMedia = (response: unknown): readonly Media[] =>
  parse('media objects', manyShape, response).data
