import { type HeaderDescription, text, wholeNumber } from './header-schema.ts'

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
    example: 'Authorization, Accept-Encoding',
    optional: true,
  },
  Link: {
    description: 'The URL of the items that follow (RFC 8288); absent where none follow.',
    schema: { type: 'string', pattern: '^<[^>]+>; rel="next"$' },
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
    description: 'When the item was stored.',
    schema: text,
    example: 'Sun, 01 Nov 2026 09:30:00 GMT',
  },
  'Content-Disposition': {
    description: '`inline` or `attachment`, with the filename.',
    schema: text,
    example: 'inline; filename="harbour.jpg"',
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
