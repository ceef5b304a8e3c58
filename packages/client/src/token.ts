import { arrayOf, type Check, objectOf, parse, text, textOrNull } from './shape.ts'

/** The properties of a token, as on the wire; never the token itself. */
export interface Token {
  readonly id: string
  /** Empty if it has none. */
  readonly name: string
  /** The name of its bucket. */
  readonly bucket: string
  /** The permitted operations, such as `media:read`. */
  readonly scopes: readonly string[]
  /** RFC 3339, UTC. */
  readonly created_at: string
  /** RFC 3339, UTC; null if it does not expire. */
  readonly expires_at: string | null
}

export const tokenMembers = {
  id: text,
  name: text,
  bucket: text,
  scopes: arrayOf(text),
  created_at: text,
  expires_at: textOrNull,
}

const tokenShape: Check<Token> = objectOf<Token>(tokenMembers)

/** Reads the token from a response. Throws a `ShapeError` that names the invalid field. */
export const readToken = (response: unknown): Token => parse('a token', tokenShape, response)
