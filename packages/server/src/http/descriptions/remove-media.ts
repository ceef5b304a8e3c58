import { type Description, exampleBase } from '../openapi/description.ts'
import { sampleMedia } from '../openapi/samples.ts'
import { MediaParams } from '../schemas.ts'

export const removeMedia: Description = {
  operationId: 'removeMedia',
  tag: 'Items',
  summary: 'Delete one item',
  description: `From the 204 on the item is neither listed nor served here; caches elsewhere may keep its bytes until they expire.
A second delete is a 404.`,
  rules: 'M2 and M3',
  needs: 'media:delete',
  path: MediaParams,
  answers: { 204: { description: 'Deleted.' } },
  problems: ['media-unknown', 'body-too-large', 'storage-full'],
  curl: `curl -X DELETE -H "Authorization: Bearer $TOKEN" ${exampleBase}/api/media/${sampleMedia.id}`,
}
