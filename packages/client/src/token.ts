import { arrayOf, type Check, objectOf, parse, text, textOrNull } from './shape.ts'

/** What a token is, as on the wire; never the token itself. */
export interface Token {
  readonly id: string
  /** Empty where it was given none. */
  readonly name: string
  /** The name of the one bucket it belongs to. */
  readonly bucket: string
  /** What it may do, such as `media:read`. */
  readonly scopes: readonly string[]
  /** RFC 3339, UTC. */
  readonly created_at: string
  /** RFC 3339, UTC; null where it does not end. */
  readonly expires_at: string | null
}

const tokenShape: Check<Token> = objectOf<Token>({
  id: text,
  name: text,
  bucket: text,
  scopes: arrayOf(text),
  created_at: text,
  expires_at: textOrNull,
})

/** The token in an answer; throws a `ShapeError` that names the faulty field. */
export const readToken = (answer: unknown): Token => parse('a token', tokenShape, answer)
