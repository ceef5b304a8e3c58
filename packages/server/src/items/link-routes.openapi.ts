import { jsonBodyProblems } from '../http/bodies.ts'
import { exampleBase, type OperationDescription } from '../http/openapi/description.ts'
import { ItemParams, LinkBody, LinksBody } from '../http/openapi/parameters.ts'
import { otherItem, sampleItem, sampleLink } from '../http/openapi/samples.ts'
import { SignedLink, SignedLinks } from '../http/openapi/schemas.ts'

export const createLink: OperationDescription = {
  operationId: 'createLink',
  tag: 'Items',
  summary: 'Create a link that expires',
  description: `Returns a signed URL of the bytes, or of a variant. It needs no token until it expires, also in a private bucket. It is
used unchanged: the signature covers the path, \`variant\`, \`download\` and the expiry.

In a public bucket the plain URL works too.`,
  rules: 'H5 to H8 and M3',
  needs: 'media:read',
  path: ItemParams,
  body: {
    description: 'The lifetime, and what the link returns.',
    content: {
      'application/json': {
        schema: LinkBody,
        examples: {
          'for a day': { expires_in: 86_400 },
          'a thumbnail, the same URL for 15 minutes': { variant: 'thumb' },
        },
      },
    },
  },
  responses: {
    201: {
      description: 'Created.',
      headers: ['Cache-Control'],
      content: { 'application/json': { schema: SignedLink, examples: { 'for a day': sampleLink } } },
    },
  },
  problems: [...jsonBodyProblems, 'media-unknown', 'storage-full'],
  curl: `curl -H "Authorization: Bearer $TOKEN" -H 'Content-Type: application/json' \\
  -d '{"expires_in": 86400}' ${exampleBase}/api/media/${sampleItem.id}/links`,
}

const ids = [sampleItem.id, otherItem.id]

export const createLinks: OperationDescription = {
  operationId: 'createLinks',
  tag: 'Items',
  summary: 'Create links of many items',
  description: `Returns a signed URL of each item, with the same expiry. \`missing\` are the ids of which the bucket has no item.`,
  rules: 'H5 to H8',
  needs: 'media:read',
  body: {
    description: 'The ids of 1 to 500 items, the lifetime, and what the links return.',
    content: {
      'application/json': { schema: LinksBody, examples: { 'for a day': { ids, expires_in: 86_400 } } },
    },
  },
  responses: {
    200: {
      description: 'Created.',
      headers: ['Cache-Control'],
      content: {
        'application/json': {
          schema: SignedLinks,
          examples: {
            'one item is missing': {
              links: [{ id: sampleItem.id, url: sampleLink.url }],
              missing: ids.slice(1),
              expires_at: sampleLink.expires_at,
            },
          },
        },
      },
    },
  },
  problems: [...jsonBodyProblems, 'storage-full'],
  curl: `curl -H "Authorization: Bearer $TOKEN" -H 'Content-Type: application/json' \\
  -d '{"ids": ["${ids.join('", "')}"], "expires_in": 86400}' ${exampleBase}/api/links`,
}
