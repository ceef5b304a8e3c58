import { Type } from 'typebox'
import {
  exampleBase,
  type OperationDescription,
  type ResponseHeader,
  readIfPrivate,
} from '../http/openapi/description.ts'
import { BytesParams, BytesQuery, NamedBytesParams } from '../http/openapi/parameters.ts'
import { sampleItem } from '../http/openapi/samples.ts'

const redirectHeaders: readonly ResponseHeader[] = [
  'Content-Security-Policy',
  'Cross-Origin-Resource-Policy',
  'Referrer-Policy',
]

const securityHeaders: readonly ResponseHeader[] = [...redirectHeaders, 'X-Content-Type-Options']

const validatorHeaders: readonly ResponseHeader[] = ['ETag', 'Last-Modified', 'Cache-Control']

const fullHeaders: readonly ResponseHeader[] = [
  ...validatorHeaders,
  'Vary',
  'Content-Disposition',
  'Accept-Ranges',
  'Mediabucket-Variant',
  ...securityHeaders,
]

const anyBytes = { '*/*': { schema: Type.String({ format: 'binary' }) } }

export const serveBytes: OperationDescription = {
  operationId: 'serveBytes',
  tag: 'Bytes',
  summary: 'Get the bytes',
  description: `Returns the file byte for byte as it was sent, in a public bucket to everyone who has the URL. In a private bucket, the request needs a
token of the bucket with \`media:read\`, or a signed URL (\`POST /api/media/{id}/links\`), which is used unchanged.

With \`variant\` the response is a smaller picture of the file without metadata: AVIF if \`Accept\` names \`image/avif\`, otherwise WebP. It waits
until the variant is rendered, or with \`wait\` for that many seconds at most: then the response is 202 without a body. Ask again after
\`Retry-After\`.`,
  rules: 'B1 to B12, V1 to V7, V17 to V21, H1 to H6',
  needs: readIfPrivate,
  path: BytesParams,
  query: BytesQuery,
  headers: [
    'Authorization',
    'Accept',
    'Range',
    'If-Range',
    'If-Match',
    'If-None-Match',
    'If-Modified-Since',
    'If-Unmodified-Since',
  ],
  responses: {
    200: { description: 'The whole file.', headers: fullHeaders, content: anyBytes },
    202: {
      description: 'The variant is not rendered yet (`wait`).',
      headers: ['Retry-After', 'Cache-Control', ...securityHeaders],
    },
    206: {
      description: 'The requested range.',
      headers: ['Content-Range', ...fullHeaders],
      content: anyBytes,
    },
    302: {
      description: 'The store sends the bytes (`MEDIABUCKET_SENDFILE=redirect`).',
      headers: ['Location', 'Cache-Control', ...redirectHeaders],
    },
    308: {
      description: 'Another host serves the bytes (`MEDIABUCKET_MEDIA_BASE_URL`).',
      headers: ['Location', 'Cache-Control', 'Vary', ...redirectHeaders],
    },
    304: {
      description: 'The bytes have not changed since the response with this tag.',
      headers: [...validatorHeaders, 'Vary', ...securityHeaders],
    },
  },
  problems: [
    'destination-refused',
    'signature-invalid',
    'link-expired',
    'variant-unknown',
    'parameter-malformed',
    'media-unknown',
    'variant-unavailable',
    'precondition-failed',
    'range-unsatisfiable',
    'bytes-missing',
    'variants-busy',
    'catalog-busy',
    'catalog-unavailable',
  ],
  problemHeaders: redirectHeaders,
  head: true,
  curl: `curl -OJ ${exampleBase}/media/${sampleItem.id}.jpg`,
}

const withLink = (headers: readonly ResponseHeader[] | undefined): readonly ResponseHeader[] => [
  'Link',
  ...(headers ?? []),
]

const { 200: whole, 206: part, 304: unchanged } = serveBytes.responses

export const serveNamedBytes: OperationDescription = {
  ...serveBytes,
  operationId: 'serveNamedBytes',
  summary: 'Get the bytes, by a URL with a name',
  description:
    'As the URL without the name, which is `Link` with `rel="canonical"`. The name is any text, for people and search engines; its extension is that of the item. Signed URLs may have one, too.',
  rules: 'B13',
  path: NamedBytesParams,
  responses: {
    ...serveBytes.responses,
    200: { ...whole, description: 'The whole file.', headers: withLink(whole?.headers) },
    206: { ...part, description: 'The requested range.', headers: withLink(part?.headers) },
    304: {
      ...unchanged,
      description: 'The bytes have not changed since the response with this tag.',
      headers: withLink(unchanged?.headers),
    },
  },
  curl: `curl -O ${exampleBase}/media/${sampleItem.id}/harbour.jpg`,
}
