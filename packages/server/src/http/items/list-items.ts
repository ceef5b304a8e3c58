import { createHash } from 'node:crypto'
import { promisify } from 'node:util'
import { gzip } from 'node:zlib'
import type { FastifyInstance } from 'fastify'
import type { BucketId } from '../../catalog/records.ts'
import { type ItemsQuery, parseItemsQuery } from '../../core/items-query.ts'
import type { UrlSettings } from '../../core/media-url.ts'
import { describeMedia } from '../../media/describe-media.ts'
import type { ListItems } from '../../media/items/list-items.ts'
import { acceptsCoding } from '../headers/accept-encoding.ts'
import { matchesWeakly } from '../headers/entity-tag.ts'
import { exampleBase, type OperationDescription, routeOptions } from '../openapi/operation-description.ts'
import { otherMedia, sampleMedia } from '../openapi/samples.ts'
import { ItemList, ItemListQuery } from '../openapi/schemas.ts'
import type { Authorizer } from '../tokens/authorizer.ts'

/** Part of every entity tag. Increase it when the format of media objects or lists changes. */
const formatVersion = 1
/** Shorter lists are not compressed. Bytes. */
const minimumGzipLength = 1024

type Coding = 'identity' | 'gzip'

const compress = promisify(gzip)

/** `GET` and `HEAD /api/items`: the media objects of a bucket by cursor (docs/interface.md, Lists of items). */
export function listItemsRoute(
  app: FastifyInstance,
  parts: {
    readonly authorize: Authorizer
    readonly listItems: ListItems
    readonly urlSettings: UrlSettings
    readonly epoch: string
    readonly vary: string
  },
): void {
  const { authorize, listItems, urlSettings, epoch, vary } = parts

  /** Returns the entity tags of the responses to a query at one revision of the bucket (K7). */
  function entityTags(bucketId: BucketId, revision: number, query: ItemsQuery): Record<Coding, string> {
    const digest = createHash('sha256')
      .update(JSON.stringify([formatVersion, epoch, urlSettings, query]))
      .digest('base64url')
      .slice(0, 16)
    const tag = `${digest}.${bucketId}.${revision}`
    return { identity: `"${tag}"`, gzip: `"${tag}.gzip"` }
  }

  app.route<{ Querystring: Readonly<Record<string, unknown>> }>({
    method: ['GET', 'HEAD'],
    url: '/api/items',
    ...routeOptions(description),
    async handler(request, reply) {
      const { bucketId, revision: current } = await authorize(request, 'media:read')
      const query = parseItemsQuery(request.query)
      const ifNoneMatch = request.headers['if-none-match']
      const codings: readonly Coding[] = acceptsCoding(request.headers['accept-encoding'], 'gzip')
        ? ['identity', 'gzip']
        : ['identity']
      const findMatch = (tags: Record<Coding, string>) =>
        codings.map((coding) => tags[coding]).find((tag) => matchesWeakly(ifNoneMatch ?? '', tag))
      const notModified = (etag: string) => reply.code(304).header('etag', etag).send()
      reply.headers({ 'cache-control': 'private, no-cache', vary })

      // A tag of the current revision needs no list. `*` names no revision.
      const currentTag = ifNoneMatch === '*' ? undefined : findMatch(entityTags(bucketId, current, query))
      if (currentTag !== undefined) return notModified(currentTag)

      const { revision, items, next } = await listItems(bucketId, query)
      const tags = entityTags(bucketId, revision, query)
      const matched = findMatch(tags)
      if (matched !== undefined) return notModified(matched)

      if (next !== null) reply.header('link', `<${nextUrl(urlSettings, query, next)}>; rel="next"`)
      const list = { data: items.map((item) => describeMedia(urlSettings, item)), next_cursor: next }
      const body = Buffer.from(reply.serialize(list))
      reply.type('application/json; charset=utf-8')
      if (!codings.includes('gzip') || body.length < minimumGzipLength)
        return reply.header('etag', tags.identity).send(body)
      return reply.headers({ etag: tags.gzip, 'content-encoding': 'gzip' }).send(await compress(body))
    },
  })
}

/** The URL of the list after a cursor. */
function nextUrl({ baseUrl }: UrlSettings, { limit, order }: ItemsQuery, cursor: string): string {
  const parameters = new URLSearchParams({ limit: `${limit}`, order, after: cursor })
  return `${baseUrl}/api/items?${parameters}`
}

const description: OperationDescription = {
  operationId: 'listItems',
  tag: 'Listing',
  summary: 'List media objects',
  description: `Returns media objects in the order of upload, oldest or newest first. The cost does not depend on the size of the bucket.

To read a whole bucket, send \`next_cursor\` as \`after\` until it is null, or follow the \`Link\` with \`rel="next"\`. Every item that
exists during the whole iteration is returned exactly once, whatever is uploaded and deleted in the meantime.`,
  rules: 'K1 to K7',
  needs: 'media:read',
  query: ItemListQuery,
  headers: ['If-None-Match', 'Accept-Encoding'],
  responses: {
    200: {
      description: 'The items.',
      headers: ['ETag', 'Cache-Control', 'Vary', 'Content-Encoding', 'Link'],
      content: {
        'application/json': {
          schema: ItemList,
          examples: {
            'first of several': {
              data: [sampleMedia, otherMedia],
              next_cursor: 'kXk2mP0vQ3xLMTIwMy4xNzkwMDAwMDAwMDAw',
            },
            'empty bucket': { data: [], next_cursor: null },
          },
        },
      },
    },
    304: {
      description: 'The list has not changed since the response with this tag.',
      headers: ['ETag', 'Cache-Control', 'Vary'],
    },
  },
  problems: ['parameter-malformed', 'cursor-malformed'],
  head: true,
  curl: `curl -H "Authorization: Bearer $TOKEN" '${exampleBase}/api/items?order=newest&limit=200'`,
}
