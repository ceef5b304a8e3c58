import type { TObject, TSchema } from 'typebox'
import type { FaultCode } from '../../core/faults.ts'
import type { ServiceScope } from '../../core/token-rules.ts'

/** The base URL in examples; the document has the configured one instead. */
export const exampleBase = 'https://media.example.org'

export const tags = {
  Listing: 'List the items of the bucket page by page.',
  Upload: 'Upload files; they are durable once the response arrives.',
  Items: 'Get or delete one item, or get the bucket.',
  Bytes: 'Get the files by their URLs, which need no token in public buckets.',
  Tokens: 'Get the properties of the token, and manage the tokens of the bucket.',
  Buckets: 'Create, list, set and delete buckets, with a service token.',
  Service: 'Manage the keys of the service and read its audit log, with a service token.',
  Webhooks: 'Tell other programs of every change of the bucket.',
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
  readonly needs: ServiceScope | 'any token' | 'nothing' | typeof readIfPrivate
  /** Needs a service token although tokens of buckets can have this scope (isOfService). */
  readonly ofService?: true
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

/** A header of the OpenAPI document. */
export interface HeaderDescription {
  readonly description: string
  readonly schema: Readonly<Record<string, unknown>>
  readonly example: string
  /** Whether a response may lack it; its description says when. */
  readonly optional?: true
}

const text = { type: 'string' }
const wholeNumber = { type: 'string', pattern: '^(0|[1-9]\\d*)$' }

/** The optional headers of requests by name. */
export const requestHeaders = {
  Authorization: {
    description: 'For an item of a private bucket: `Bearer` and a token of the bucket with `media:read`.',
    schema: text,
    example: 'Bearer mbkt_…',
  },
  Accept: {
    description:
      'For items: with `application/x-ndjson`, the response has one JSON object on each line. For changes: with `text/event-stream`, it is a stream of events. For variants: with `image/avif`, it is AVIF.',
    schema: text,
    example: 'application/json',
  },
  'Last-Event-ID': {
    description:
      'For streams: the `id` of the last event that the client has received, after which the stream continues. It is preferred to `after`.',
    schema: text,
    example: 'kXk2mP0vQ3xLMTIwMw',
  },
  'Mediabucket-Expires-At': {
    description:
      'When the items of the upload expire: a time in the future. By default, the bucket’s `item_days` apply.',
    schema: text,
    example: '2030-01-31T12:00:00Z',
  },
  'Mediabucket-Labels': {
    description:
      'The labels of the files: a dictionary of RFC 9651, whose values are strings, display strings, tokens or integers; or a JSON object in ASCII. In a form, a field `labels` replaces it.',
    schema: text,
    example: 'album="42", user="7"',
  },
  'Mediabucket-Focus': {
    description:
      'The point of a picture that sizes keep that cut, from 0 to 1 of its width and its height: `0.3,0.5`, or a JSON object with `x` and `y`. In a form, a field `focus` replaces it.',
    schema: text,
    example: '0.3,0.5',
  },
  'Mediabucket-Bucket': {
    description:
      'The name of the bucket: required with a service token, which belongs to none. Every other token may name its own bucket only.',
    schema: text,
    example: 'customer-42',
  },
  'If-None-Match': {
    description: 'One or more entity tags, weak ones included, or `*`. A match returns 304 without a body.',
    schema: text,
    example: '"Vj9o2cWm3xkZ0a1b.1.12.2"',
  },
  'If-Match': {
    description: 'Entity tags, one of which must be the current one.',
    schema: text,
    example: '"q1Yk0Z3v9hF5wS7xT2uM8bN4cR6eA1dG0iJ3kL5oPqs"',
  },
  'If-Modified-Since': {
    description: 'A date; ignored with `If-None-Match`.',
    schema: text,
    example: 'Sun, 01 Nov 2026 09:30:00 GMT',
  },
  'If-Unmodified-Since': {
    description: 'A date; ignored with `If-Match`.',
    schema: text,
    example: 'Sun, 01 Nov 2026 09:30:00 GMT',
  },
  'If-Range': {
    description: 'A strong entity tag or a date; `Range` is ignored unless it matches.',
    schema: text,
    example: '"q1Yk0Z3v9hF5wS7xT2uM8bN4cR6eA1dG0iJ3kL5oPqs"',
  },
  Range: {
    description: 'One byte range. Several ranges and other units return the whole file.',
    schema: text,
    example: 'bytes=0-1023',
  },
  'Accept-Encoding': {
    description: 'With `gzip`, large pages are compressed.',
    schema: text,
    example: 'gzip',
  },
  'Content-Disposition': {
    description:
      'The filename of a raw body (RFC 6266); `filename*` is preferred. The parts of a form have their own.',
    schema: text,
    example: 'attachment; filename="harbour.jpg"',
  },
  'Tus-Resumable': {
    description: 'The tus version of the client. Required.',
    schema: { type: 'string', const: '1.0.0' },
    example: '1.0.0',
  },
  'Upload-Length': {
    description: 'The length of the file in bytes.',
    schema: wholeNumber,
    example: '48213',
  },
  'Upload-Defer-Length': {
    description: 'The length follows later, with a chunk.',
    schema: { type: 'string', const: '1' },
    example: '1',
  },
  'Upload-Offset': {
    description: 'The position of the chunk in the file. Required.',
    schema: wholeNumber,
    example: '0',
  },
  'Upload-Metadata': {
    description:
      'Pairs of a name and a Base64 value: `filename` and `filetype` describe the item, `labels` has its labels in JSON, others are stored.',
    schema: text,
    example: 'filename aGFyYm91ci5qcGc=,filetype aW1hZ2UvanBlZw==',
  },
  'Upload-Checksum': {
    description: '`sha1` or `sha256`, a space and the Base64 of the checksum of this chunk.',
    schema: text,
    example: 'sha1 Kq5sNclPz7QV2+lfQIuc6R7oRu0=',
  },
  'X-HTTP-Method-Override': {
    description: 'The method to use instead of POST.',
    schema: { type: 'string', enum: ['PATCH', 'HEAD', 'DELETE'] },
    example: 'PATCH',
  },
  'Idempotency-Key': {
    description:
      'Makes a repeated upload safe: the same key with the same content returns the first response.',
    schema: { type: 'string', minLength: 1, maxLength: 257 },
    example: '"8e03978e-40d5-43dd-bc93-6894a57f9324"',
  },
  Expect: {
    description: 'With `100-continue`, a refusal arrives before the body is sent.',
    schema: text,
    example: '100-continue',
  },
} satisfies Readonly<Record<string, HeaderDescription>>

export type RequestHeader = keyof typeof requestHeaders

/** The headers of responses by name. */
export const responseHeaders = {
  ETag: {
    description: 'A strong entity tag of the response body; absent where the body is a stream of lines.',
    schema: { type: 'string', pattern: '^"[^"]+"$' },
    example: '"Vj9o2cWm3xkZ0a1b.1.12.2"',
    optional: true,
  },
  Location: {
    description: 'The URL of the item; absent where several were stored.',
    schema: { type: 'string', format: 'uri' },
    example: 'https://media.example.org/api/media/k92v8d0q3h5wkc9r1n6x7zjy4tam',
    optional: true,
  },
  'Cache-Control': {
    description: 'How caches may store the response.',
    schema: text,
    example: 'private, no-cache',
  },
  Vary: {
    description: 'The request headers that the response depends on.',
    schema: text,
    example: 'Authorization, Mediabucket-Bucket, Accept-Encoding',
    optional: true,
  },
  Link: {
    description:
      'Of a list, the URL of the items that follow (RFC 8288); absent where none follow. Of bytes by a URL with a name, the short URL.',
    schema: { type: 'string', pattern: '^<[^>]+>; rel="(?:next|canonical)"$' },
    example: '<https://media.example.org/api/items?limit=100&order=oldest&after=kXk2mP0v>; rel="next"',
    optional: true,
  },
  'Content-Encoding': {
    description: 'Present where the body is compressed, which the client must accept.',
    schema: { type: 'string', const: 'gzip' },
    example: 'gzip',
    optional: true,
  },
  'Content-Range': {
    description: 'The range and the size of the file; `bytes */size` where the range is not satisfiable.',
    schema: { type: 'string', pattern: '^bytes (\\d+-\\d+|\\*)/\\d+$' },
    example: 'bytes 0-1023/48213',
  },
  'Accept-Ranges': {
    description: 'Byte ranges are supported.',
    schema: { type: 'string', const: 'bytes' },
    example: 'bytes',
  },
  'Last-Modified': {
    description: 'When the item was stored; absent where the response is a variant.',
    schema: text,
    example: 'Sun, 01 Nov 2026 09:30:00 GMT',
  },
  'Content-Disposition': {
    description: '`inline` or `attachment`, with the filename.',
    schema: text,
    example: 'inline; filename="harbour.jpg"',
  },
  'Mediabucket-Variant': {
    description: 'The name of the size of a variant; absent where the response is the file.',
    schema: text,
    example: 'medium',
    optional: true,
  },
  'Content-Security-Policy': {
    description:
      'Forbids scripts and external resources. Absent for PDF, whose viewers it breaks, and for the service’s own plain text.',
    schema: text,
    example: "default-src 'none'; style-src 'unsafe-inline'; sandbox",
    optional: true,
  },
  'Cross-Origin-Resource-Policy': {
    description: 'Other sites may embed the bytes.',
    schema: { type: 'string', const: 'cross-origin' },
    example: 'cross-origin',
    optional: true,
  },
  'Referrer-Policy': {
    description: 'The URL of the bytes is not sent to other sites.',
    schema: { type: 'string', const: 'no-referrer' },
    example: 'no-referrer',
    optional: true,
  },
  'X-Content-Type-Options': {
    description: 'Clients must not guess the type.',
    schema: { type: 'string', const: 'nosniff' },
    example: 'nosniff',
  },
  'WWW-Authenticate': {
    description:
      'The challenge (RFC 6750), with the scope where one is missing. A 403 that is not about a token lacks it.',
    schema: { type: 'string', pattern: '^Bearer ' },
    example: 'Bearer realm="mediabucket"',
    optional: true,
  },
  'Retry-After': {
    description: 'Seconds to wait before the next attempt.',
    schema: { type: 'string', pattern: '^\\d+$' },
    example: '2',
  },
  RateLimit: {
    description: 'With 429: the exceeded limit, and the seconds until it accepts a request.',
    schema: { type: 'string', pattern: '^"(token|address|authentication)";r=0;t=\\d+$' },
    example: '"token";r=0;t=1',
  },
  'RateLimit-Policy': {
    description: 'With 429: the exceeded limit, its number of requests and its window in seconds.',
    schema: { type: 'string', pattern: '^"(token|address|authentication)";q=\\d+;w=\\d+$' },
    example: '"token";q=60000;w=60',
  },
  'Content-Location': {
    description: 'The item of a finished upload; absent before.',
    schema: { type: 'string', format: 'uri' },
    example: 'https://media.example.org/api/media/k92v8d0q3h5wkc9r1n6x7zjy4tam',
    optional: true,
  },
  'Tus-Resumable': {
    description: 'The tus version; absent where the request was not valid HTTP.',
    schema: { type: 'string', const: '1.0.0' },
    example: '1.0.0',
    optional: true,
  },
  'Tus-Version': {
    description: 'With 412: the supported tus versions.',
    schema: text,
    example: '1.0.0',
    optional: true,
  },
  'Upload-Offset': {
    description:
      'The number of bytes that are received and synced to disk; absent where the request had no body.',
    schema: wholeNumber,
    example: '1024',
    optional: true,
  },
  'Upload-Length': {
    description: 'The length of the file in bytes; absent while it is unknown.',
    schema: wholeNumber,
    example: '48213',
    optional: true,
  },
  'Upload-Defer-Length': {
    description: 'The length is not known yet.',
    schema: { type: 'string', const: '1' },
    example: '1',
    optional: true,
  },
  'Upload-Metadata': {
    description: 'The metadata as sent; absent where none was sent.',
    schema: text,
    example: 'filename aGFyYm91ci5qcGc=,filetype aW1hZ2UvanBlZw==',
    optional: true,
  },
  'Upload-Expires': {
    description: 'When an unfinished upload expires if no more bytes arrive; absent once it is finished.',
    schema: text,
    example: 'Mon, 02 Nov 2026 09:30:00 GMT',
    optional: true,
  },
  Allow: {
    description: 'With 405: the methods of this path.',
    schema: text,
    example: 'GET, HEAD, OPTIONS, POST',
    optional: true,
  },
} satisfies Readonly<Record<string, HeaderDescription>>

export type ResponseHeader = keyof typeof responseHeaders

/** Whether the operation needs a service token, and no bucket in Mediabucket-Bucket (docs/interface.md ST5). */
export const isOfService = ({
  needs,
  ofService,
}: Pick<OperationDescription, 'needs' | 'ofService'>): boolean =>
  needs === 'buckets:manage' || ofService === true

/** Whether an operation with another method than GET changes something, by what it needs. */
export const changesByScope = (needs: OperationDescription['needs']): boolean =>
  typeof needs === 'string' && !['nothing', 'any token', 'media:read'].includes(needs)
