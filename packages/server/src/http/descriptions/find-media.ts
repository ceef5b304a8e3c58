import { type Description, exampleBase } from '../openapi/description.ts'
import { sampleMedia } from '../openapi/samples.ts'
import { MediaObject, MediaParams } from '../schemas.ts'

export const findMedia: Description = {
  operationId: 'findMedia',
  tag: 'Items',
  summary: 'Look at one item',
  description:
    'What is known of an item. An id that is unknown, deleted or in another bucket is one and the same 404.',
  rules: 'M1 and M3',
  needs: 'media:read',
  path: MediaParams,
  answers: {
    200: {
      description: 'The item.',
      headers: ['Cache-Control'],
      content: { 'application/json': { schema: MediaObject, examples: { picture: sampleMedia } } },
    },
  },
  problems: ['media-unknown'],
  curl: `curl -H "Authorization: Bearer $TOKEN" ${exampleBase}/api/media/${sampleMedia.id}`,
}
