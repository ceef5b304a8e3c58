import { arrayOf, type Check, count, countOrNull, objectOf, parse, text, textOrNull } from './shape.ts'

/** One item, as on the wire. */
export interface Media {
  readonly id: string
  /** Where its bytes are. */
  readonly url: string
  readonly filename: string | null
  readonly content_type: string
  /** Bytes. */
  readonly size: number
  /** Hex; null for items whose bytes the service never held. */
  readonly sha256: string | null
  /** RFC 3339, UTC. */
  readonly created_at: string
  /** Pixels; null where unknown. */
  readonly width: number | null
  /** Pixels; null where unknown. */
  readonly height: number | null
}

const mediaShape: Check<Media> = objectOf<Media>({
  id: text,
  url: text,
  filename: textOrNull,
  content_type: text,
  size: count,
  sha256: textOrNull,
  created_at: text,
  width: countOrNull,
  height: countOrNull,
})

/** The media object of an answer; throws a `ShapeError` that names the faulty field. */
export const readMedia = (answer: unknown): Media => parse('a media object', mediaShape, answer)

const manyShape: Check<{ data: readonly Media[] }> = objectOf<{ data: readonly Media[] }>({
  data: arrayOf(mediaShape),
})

/** The media objects of an answer to a form with several files, in the order sent. */
export const readManyMedia = (answer: unknown): readonly Media[] =>
  parse('media objects', manyShape, answer).data
