import { maxLabelValue } from '@mediabucket/client/rules'
import { Type } from 'typebox'
import { jsonBodyProblems } from '../http/bodies.ts'
import { exampleBase, type OperationDescription } from '../http/openapi/description.ts'
import { sampleItem } from '../http/openapi/samples.ts'
import { closedObject, Focus, MediaObject, nullable } from '../http/openapi/schemas.ts'
import { maxSourceUrl, sourceUrlRule } from './url-source.ts'

const UrlUploadBody = closedObject('UrlUpload', 'A file on another server. Null is the same as no member.', {
  url: Type.String({ format: 'uri', maxLength: maxSourceUrl, description: sourceUrlRule }),
  filename: Type.Optional(
    nullable(
      Type.String({
        description: 'Without it, the name that the other server states, or the end of the URL.',
      }),
    ),
  ),
  content_type: Type.Optional(
    nullable(Type.String({ description: 'The declared type (U7). Without it, that of the other server.' })),
  ),
  labels: Type.Optional(
    Type.Unsafe<Record<string, string> | null>({
      type: ['object', 'null'],
      additionalProperties: { type: 'string', maxLength: maxLabelValue },
      description: 'The labels of the item.',
    }),
  ),
  focus: Type.Optional(nullable(Focus)),
  expires_at: Type.Optional(
    nullable(Type.String({ format: 'date-time', description: 'When the item expires.' })),
  ),
  sha256: Type.Optional(
    nullable(
      Type.String({
        pattern: '^[0-9a-fA-F]{64}$',
        description: 'The SHA-256 that the file has to have, in hexadecimal digits.',
      }),
    ),
  ),
})

export const storeFromUrl: OperationDescription = {
  operationId: 'storeFromUrl',
  tag: 'Upload',
  summary: 'Upload a file from a URL',
  description: `The service requests the URL and stores what it responds as one file, as if its bytes had been uploaded. The operator has to allow it
(\`MEDIABUCKET_URL_UPLOADS\`). The request has no credentials and no cookies.

With \`Accept: text/event-stream\` the response is a stream of events: \`progress\` with the bytes that have arrived, and at the end \`stored\` with the media
object, or \`problem\`.`,
  rules: 'FU1 to FU7',
  needs: 'media:write',
  headers: ['Accept', 'Idempotency-Key'],
  body: {
    description: 'The URL, and what is known of the file.',
    content: {
      'application/json': {
        schema: UrlUploadBody,
        examples: { 'a picture': { url: 'https://example.com/harbour.jpg', labels: { album: '42' } } },
      },
    },
  },
  responses: {
    201: {
      description: 'Stored.',
      headers: ['Location', 'Cache-Control'],
      content: { 'application/json': { schema: MediaObject, examples: { item: sampleItem } } },
    },
  },
  problems: [
    ...jsonBodyProblems,
    'url-uploads-off',
    'url-uploads-too-many',
    'source-refused',
    'source-failed',
    'source-timeout',
    'digest-mismatch',
    'file-unreadable',
    'file-too-large',
    'idempotency-key-malformed',
    'idempotency-key-reused',
    'quota-exceeded',
    'token-limit-exceeded',
    'type-refused',
    'file-refused',
    'scanner-unavailable',
    'storage-full',
  ],
  curl: `curl -H "Authorization: Bearer $TOKEN" -H 'Content-Type: application/json' \\\n  -d '{"url": "https://example.com/harbour.jpg"}' ${exampleBase}/api/media/from-url`,
}
