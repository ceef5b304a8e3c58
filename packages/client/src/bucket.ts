import { type Check, count, countOrNull, objectOf, parse, text } from './shape.ts'

/** What a bucket holds and may hold, as on the wire. */
export interface Bucket {
  readonly name: string
  readonly items: number
  readonly bytes: number
  /** What unfinished uploads in pieces have reserved beside what is held. */
  readonly reserved_items: number
  readonly reserved_bytes: number
  /** Null where there is no limit. */
  readonly max_items: number | null
  readonly max_bytes: number | null
}

const bucketShape: Check<Bucket> = objectOf<Bucket>({
  name: text,
  items: count,
  bytes: count,
  reserved_items: count,
  reserved_bytes: count,
  max_items: countOrNull,
  max_bytes: countOrNull,
})

/** The bucket in an answer; throws a `ShapeError` that names the faulty field. */
export const readBucket = (answer: unknown): Bucket => parse('a bucket', bucketShape, answer)
