import type { FastifyInstance } from 'fastify'
import type { UrlSettings } from '../../core/media-url.ts'
import type { EditMedia } from '../../media/edit-media.ts'
import { jsonBodyProblems } from '../bodies/read-json.ts'
import { leaveBodiesUnread } from '../bodies/unread-bodies.ts'
import { exampleBase, type OperationDescription, routeOptions } from '../openapi/operation-description.ts'
import { MediaParams } from '../openapi/request-schemas.ts'
import { sampleMedia } from '../openapi/samples.ts'
import { ItemEdit, MediaObject } from '../openapi/schemas.ts'
import type { AuthorizedJsonReader } from '../tokens/read-authorized-json.ts'
import { itemResponse, matchesState } from './item-response.ts'
import { editMembers, readEdit } from './read-edit.ts'

interface Parts {
  readonly readAuthorizedJson: AuthorizedJsonReader
  readonly editMedia: EditMedia
  readonly urlSettings: UrlSettings
}

const patchTypes = ['application/merge-patch+json', 'application/json']

/** `PATCH /api/media/{id}` (docs/interface.md M5, M6). */
export async function editMediaRoute(app: FastifyInstance, parts: Parts): Promise<void> {
  const { readAuthorizedJson, editMedia, urlSettings } = parts
  leaveBodiesUnread(app)
  app.patch<{ Params: MediaParams }>('/api/media/:id', routeOptions(description), async (request, reply) => {
    const { caller, body } = await readAuthorizedJson(request, 'media:write', editMembers, patchTypes)
    // Before If-Match: a precondition is ignored if the request is refused without it (RFC 9110, section 13.2.1).
    const edit = readEdit(body)
    const ifMatch = request.headers['if-match']
    const item = await editMedia(
      caller.bucketId,
      request.params.id,
      edit,
      ifMatch === undefined ? null : (item) => matchesState(ifMatch, itemResponse(urlSettings, item)),
      caller.actor,
    )
    const { media, headers } = itemResponse(urlSettings, item)
    return reply.headers(headers).send(media)
  })
}

const sampleEdit = { alt_text: 'Three boats in a harbour', caption: null }

const description: OperationDescription = {
  operationId: 'editMedia',
  tag: 'Items',
  summary: 'Edit one item',
  description: `Changes the filename, the alternative text and the caption: a JSON merge patch (RFC 7396). Members that are left out
stay as they are, null removes a text. The URL, the stored type and the bytes stay as they are.

With \`If-Match\`, the item is changed only if it still has this \`ETag\`.`,
  rules: 'M5 and M6',
  needs: 'media:write',
  path: MediaParams,
  headers: ['If-Match'],
  body: {
    description: 'The changes.',
    content: Object.fromEntries(
      patchTypes.map((type) => [type, { schema: ItemEdit, examples: { 'an alternative text': sampleEdit } }]),
    ),
  },
  responses: {
    200: {
      description: 'The item after the change.',
      headers: ['ETag', 'Cache-Control'],
      content: {
        'application/json': {
          schema: MediaObject,
          examples: { picture: { ...sampleMedia, alt_text: sampleEdit.alt_text } },
        },
      },
    },
  },
  problems: [...jsonBodyProblems, 'media-unknown', 'precondition-failed', 'storage-full'],
  curl: `curl -X PATCH -H "Authorization: Bearer $TOKEN" -H 'Content-Type: application/merge-patch+json' \\
  -d '{"alt_text": "Three boats in a harbour"}' ${exampleBase}/api/media/${sampleMedia.id}`,
}
