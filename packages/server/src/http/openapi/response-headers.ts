import { type HeaderDescription, text, wholeNumber } from './header-schema.ts'

/** The headers of responses by name. */
export const responseHeaders = {
  ETag: {
    description: 'Strong; changes with every byte of the answer.',
    schema: { type: 'string', pattern: '^"[^"]+"$' },
    example: '"Vj9o2cWm3xkZ0a1b.1.12.2"',
  },
  Location: {
    description: 'Where the item is; left out where several were stored.',
    schema: { type: 'string', format: 'uri' },
    example: 'https://media.example.org/api/media/k92v8d0q3h5wkc9r1n6x7zjy4tam',
    optional: true,
  },
  'Cache-Control': {
    description: 'How caches may keep the answer.',
    schema: text,
    example: 'private, no-cache',
  },
  Vary: {
    description: 'The request headers that the answer depends on.',
    schema: text,
    example: 'Authorization, Accept-Encoding',
    optional: true,
  },
  'Content-Encoding': {
    description: 'Only where the client accepts gzip and the body is worth it.',
    schema: { type: 'string', const: 'gzip' },
    example: 'gzip',
    optional: true,
  },
  'Content-Range': {
    description: 'Which bytes of how many; `bytes */size` where the range was not satisfiable.',
    schema: { type: 'string', pattern: '^bytes (\\d+-\\d+|\\*)/\\d+$' },
    example: 'bytes 0-1023/48213',
  },
  'Accept-Ranges': {
    description: 'Ranges of bytes may be asked for.',
    schema: { type: 'string', const: 'bytes' },
    example: 'bytes',
  },
  'Last-Modified': {
    description: 'When the item was stored.',
    schema: text,
    example: 'Sun, 01 Nov 2026 09:30:00 GMT',
  },
  'Content-Disposition': {
    description: '`inline` or `attachment`, with the item’s name.',
    schema: text,
    example: 'inline; filename="harbour.jpg"',
  },
  'Content-Security-Policy': {
    description:
      'No script, nothing from elsewhere. Left out for PDF, whose viewers it breaks, and for plain text of our own.',
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
    description: 'The address of the bytes is sent to no other site.',
    schema: { type: 'string', const: 'no-referrer' },
    example: 'no-referrer',
    optional: true,
  },
  'X-Content-Type-Options': {
    description: 'The type is not to be guessed.',
    schema: { type: 'string', const: 'nosniff' },
    example: 'nosniff',
  },
  'WWW-Authenticate': {
    description: 'A challenge as RFC 6750 has it, with the scope where one is missing.',
    schema: { type: 'string', pattern: '^Bearer ' },
    example: 'Bearer realm="mediabucket"',
  },
  'Retry-After': {
    description: 'Seconds to wait before trying again.',
    schema: { type: 'string', pattern: '^\\d+$' },
    example: '2',
  },
  RateLimit: {
    description: 'With 429: the limit that was exceeded, and the seconds until it accepts a request.',
    schema: { type: 'string', pattern: '^"(token|address|authentication)";r=0;t=\\d+$' },
    example: '"token";r=0;t=1',
  },
  'RateLimit-Policy': {
    description: 'With 429: the limit that was exceeded, its requests and the seconds of its window.',
    schema: { type: 'string', pattern: '^"(token|address|authentication)";q=\\d+;w=\\d+$' },
    example: '"token";q=60000;w=60',
  },
  'Content-Location': {
    description: 'The item that the upload has become; left out before.',
    schema: { type: 'string', format: 'uri' },
    example: 'https://media.example.org/api/media/k92v8d0q3h5wkc9r1n6x7zjy4tam',
    optional: true,
  },
  'Tus-Resumable': {
    description: 'The version of tus; left out where a request was not even one of HTTP.',
    schema: { type: 'string', const: '1.0.0' },
    example: '1.0.0',
    optional: true,
  },
  'Tus-Version': {
    description: 'With 412: the versions of tus that the service speaks.',
    schema: text,
    example: '1.0.0',
    optional: true,
  },
  'Upload-Offset': {
    description: 'How many bytes have arrived and are synced; left out where none were sent.',
    schema: wholeNumber,
    example: '1024',
    optional: true,
  },
  'Upload-Length': {
    description: 'How many bytes the file has; left out while that is unknown.',
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
    description: 'As it was sent; left out where nothing was.',
    schema: text,
    example: 'filename aGFyYm91ci5qcGc=,filetype aW1hZ2UvanBlZw==',
    optional: true,
  },
  'Upload-Expires': {
    description:
      'Until when an unfinished upload is kept if no more bytes come; left out once it is finished.',
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
