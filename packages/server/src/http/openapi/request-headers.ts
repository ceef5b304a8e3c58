import { type HeaderDescription, text, wholeNumber } from './header-schema.ts'

/** The optional headers of requests by name. */
export const requestHeaders = {
  Authorization: {
    description: 'For an item of a private bucket: `Bearer` and a token of the bucket with `media:read`.',
    schema: text,
    example: 'Bearer mbkt_…',
  },
  Accept: {
    description:
      'For items: with `application/x-ndjson`, the response has one JSON object on each line. For variants: with `image/avif`, it is AVIF.',
    schema: text,
    example: 'application/json',
  },
  'Mediabucket-Expires-At': {
    description:
      'When the items of the upload expire: a time in the future. By default, the bucket’s `item_days` apply.',
    schema: text,
    example: '2030-01-31T12:00:00Z',
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
      'Pairs of a name and a Base64 value: `filename` and `filetype` describe the item, others are stored.',
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
