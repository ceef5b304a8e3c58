import { type HeaderDescription, text, wholeNumber } from './header-schema.ts'

/** The optional headers of requests by name. */
export const requestHeaders = {
  'If-None-Match': {
    description: 'One or more tags, weak ones included, or `*`. A match is answered 304 without a body.',
    schema: text,
    example: '"Vj9o2cWm3xkZ0a1b.1.12.2"',
  },
  'If-Match': {
    description: 'Tags, one of which must be the present one.',
    schema: text,
    example: '"q1Yk0Z3v9hF5wS7xT2uM8bN4cR6eA1dG0iJ3kL5oPqs"',
  },
  'If-Modified-Since': {
    description: 'A date; heeded without `If-None-Match`.',
    schema: text,
    example: 'Sun, 01 Nov 2026 09:30:00 GMT',
  },
  'If-Unmodified-Since': {
    description: 'A date; heeded without `If-Match`.',
    schema: text,
    example: 'Sun, 01 Nov 2026 09:30:00 GMT',
  },
  'If-Range': {
    description: 'A strong tag or a date; when it does not hold, `Range` is ignored.',
    schema: text,
    example: '"q1Yk0Z3v9hF5wS7xT2uM8bN4cR6eA1dG0iJ3kL5oPqs"',
  },
  Range: {
    description: 'One range of bytes. Several ranges, and other units, are answered whole.',
    schema: text,
    example: 'bytes=0-1023',
  },
  'Accept-Encoding': {
    description: 'With `gzip`, large pages come compressed.',
    schema: text,
    example: 'gzip',
  },
  'Content-Disposition': {
    description:
      'The name of a raw body (RFC 6266); `filename*` is preferred. Forms carry names of their own.',
    schema: text,
    example: 'attachment; filename="harbour.jpg"',
  },
  'Tus-Resumable': {
    description: 'The version of tus that the client speaks. Required.',
    schema: { type: 'string', const: '1.0.0' },
    example: '1.0.0',
  },
  'Upload-Length': {
    description: 'How many bytes the file has.',
    schema: wholeNumber,
    example: '48213',
  },
  'Upload-Defer-Length': {
    description: 'The length is told later, with a piece.',
    schema: { type: 'string', const: '1' },
    example: '1',
  },
  'Upload-Offset': { description: 'Where the piece begins. Required.', schema: wholeNumber, example: '0' },
  'Upload-Metadata': {
    description:
      'Pairs of a name and a value in Base64: `filename` and `filetype` count, the others are kept.',
    schema: text,
    example: 'filename aGFyYm91ci5qcGc=,filetype aW1hZ2UvanBlZw==',
  },
  'Upload-Checksum': {
    description: '`sha1` or `sha256`, a space and the Base64 of the checksum of this piece.',
    schema: text,
    example: 'sha1 Kq5sNclPz7QV2+lfQIuc6R7oRu0=',
  },
  'X-HTTP-Method-Override': {
    description: 'The method that is meant.',
    schema: { type: 'string', enum: ['PATCH', 'HEAD', 'DELETE'] },
    example: 'PATCH',
  },
  'Idempotency-Key': {
    description:
      'Makes the upload one that may be sent again: the same key with the same content is answered as the first time.',
    schema: { type: 'string', minLength: 1, maxLength: 257 },
    example: '"8e03978e-40d5-43dd-bc93-6894a57f9324"',
  },
  Expect: {
    description: 'With `100-continue`, a refusal comes before the body is sent.',
    schema: text,
    example: '100-continue',
  },
} satisfies Readonly<Record<string, HeaderDescription>>

export type RequestHeader = keyof typeof requestHeaders
