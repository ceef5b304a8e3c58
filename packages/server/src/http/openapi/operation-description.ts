import type { TObject, TSchema } from 'typebox'
import type { FaultCode } from '../../core/fault.ts'
import type { Scope } from '../../core/scopes.ts'
import type { RequestHeader, ResponseHeader } from './headers.ts'

/** The base URL in examples; the document has the configured one instead. */
export const exampleBase = 'https://media.example.org'

export const tags = {
  Listing: 'List the items of the bucket page by page.',
  Upload: 'Upload files; they are durable once the response arrives.',
  Items: 'Get or delete one item, or get the bucket.',
  Bytes: 'Get the files by their URLs, which need no token in public buckets.',
  Tokens: 'Get the properties of the token, and manage the tokens of the bucket.',
  Operations: 'Health, metrics and this documentation.',
}

/** Requires a token with `media:read` only in private buckets, and without a signed URL (docs/interface.md H1). */
export const readIfPrivate = 'media:read if private'

interface Content {
  /** Left out for bytes of any kind. */
  readonly schema?: TSchema
  readonly examples?: Readonly<Record<string, unknown>>
  /** Whether schema and examples are inside `data` in the wrapped envelope (docs/interface.md L15). */
  readonly enveloped?: true
}

export interface ResponseDescription {
  readonly description: string
  readonly headers?: readonly ResponseHeader[]
  /** Keyed by media type. */
  readonly content?: Readonly<Record<string, Content>>
}

/** The documentation of one operation, for the OpenAPI document and for `/docs`. Descriptions are CommonMark. */
export interface OperationDescription {
  readonly operationId: string
  readonly tag: keyof typeof tags
  readonly summary: string
  readonly description: string
  /** The rules of docs/interface.md that the operation follows, as ranges: `L1 to L18`. */
  readonly rules: string
  readonly needs: Scope | 'any token' | 'nothing' | typeof readIfPrivate
  readonly path?: TObject
  readonly query?: TObject
  readonly headers?: readonly RequestHeader[]
  readonly body?: { readonly description: string; readonly content: Readonly<Record<string, Content>> }
  readonly responses: Readonly<Record<number, ResponseDescription>>
  /** Besides those of every operation and of every operation with a token. */
  readonly problems: readonly FaultCode[]
  /** Headers of its problems besides those of all problems. */
  readonly problemHeaders?: readonly ResponseHeader[]
  /** Whether rate limits do not apply, as for monitoring (docs/interface.md W3). */
  readonly unlimited?: true
  /** Whether the HEAD of this GET is documented too. */
  readonly head?: true
  readonly curl: string
}

/** A described operation with one of its paths, in OpenAPI's notation: `/media/{name}`. */
export interface DescribedOperation {
  readonly method: string
  readonly path: string
  readonly description: OperationDescription
  /** Whether it is the HEAD of a GET with the same description. */
  readonly isHeadOfGet: boolean
}
