import { type Description, exampleBase } from '../openapi/description.ts'
import type { AnswerHeader } from '../openapi/headers.ts'
import { sampleMedia } from '../openapi/samples.ts'
import { BytesParams, BytesQuery } from '../schemas.ts'

const embedding: readonly AnswerHeader[] = [
  'Content-Security-Policy',
  'Cross-Origin-Resource-Policy',
  'Referrer-Policy',
]
const safety: readonly AnswerHeader[] = [...embedding, 'X-Content-Type-Options']
const validators: readonly AnswerHeader[] = ['ETag', 'Last-Modified', 'Cache-Control']
const whole: readonly AnswerHeader[] = [
  ...validators,
  'Vary',
  'Content-Disposition',
  'Accept-Ranges',
  ...safety,
]

export const serveBytes: Description = {
  operationId: 'serveBytes',
  tag: 'Bytes',
  summary: 'Fetch the bytes',
  description: `The file, byte for byte as it was sent. The id holds 130 random bits: whoever has the URL may fetch it.

Pictures, audio, video, PDF and plain text are served \`inline\`; every other type as an \`attachment\`. The address with the
item's own extension and the one without are the same; any other extension is a 404.

With \`variant\` the answer is a smaller picture of the file, as WebP without metadata, made when it is first asked for. Items
that cannot be pictured answer 404.

With \`download\`, whatever its value, every type is served as an \`attachment\`, so that browsers save the file.`,
  rules: 'B1 to B11, V1 to V7',
  needs: 'nothing',
  path: BytesParams,
  query: BytesQuery,
  headers: ['Range', 'If-Range', 'If-Match', 'If-None-Match', 'If-Modified-Since', 'If-Unmodified-Since'],
  answers: {
    200: { description: 'The whole file.', headers: whole, content: { '*/*': {} } },
    206: {
      description: 'The range that was asked for.',
      headers: ['Content-Range', ...whole],
      content: { '*/*': {} },
    },
    308: {
      description: 'The bytes are served by another host (`MEDIABUCKET_MEDIA_BASE_URL`).',
      headers: ['Location', 'Cache-Control', 'Vary', ...embedding],
    },
    304: { description: 'The client has these bytes.', headers: [...validators, 'Vary', ...safety] },
  },
  problems: [
    'destination-refused',
    'variant-unknown',
    'media-unknown',
    'variant-unavailable',
    'precondition-failed',
    'range-unsatisfiable',
    'bytes-missing',
    'variants-busy',
    'catalog-busy',
  ],
  problemHeaders: embedding,
  head: true,
  curl: `curl -OJ ${exampleBase}/media/${sampleMedia.id}.jpg`,
}
