import type { FastifyInstance } from 'fastify'
import { createTurns } from '../core/turns.ts'
import type { AppParts, Operations } from './app-parts.ts'
import type { BodyReader } from './bodies/body-reader.ts'
import { type CorsPolicy, varyHeader } from './headers/cors.ts'
import { listItemsRoute } from './items/list-items.ts'
import { listMediaRoute } from './listing/list-media.ts'
import type { ListingResponder } from './listing/listing-response.ts'
import type { BytesResponder } from './media/bytes-response.ts'
import { createLinkRoute } from './media/create-link.ts'
import { createLinksRoute } from './media/create-links.ts'
import { describeBucketRoute } from './media/describe-bucket.ts'
import { editMediaRoute } from './media/edit-media.ts'
import { findMediaRoute } from './media/find-media.ts'
import { removeManyMediaRoute } from './media/remove-many-media.ts'
import { removeMediaRoute } from './media/remove-media.ts'
import { serveBytesRoute } from './media/serve-bytes.ts'
import { storeMediaRoute } from './media/store-media.ts'
import { trashRoutes } from './media/trash.ts'
import { monitoringRoutes } from './monitoring-routes.ts'
import type { OperationList } from './openapi/collect-operations.ts'
import { documentationRoutes } from './openapi/documentation-routes.ts'
import { explainProblemRoute } from './openapi/explain-problem.ts'
import type { Authorizer } from './tokens/authorizer.ts'
import { createTokenRoute } from './tokens/create-token.ts'
import { describeTokenRoute } from './tokens/describe-token.ts'
import { listTokensRoute } from './tokens/list-tokens.ts'
import { createAuthorizedJsonReader } from './tokens/read-authorized-json.ts'
import { revokeTokenRoute } from './tokens/revoke-token.ts'
import { rotateTokenRoute } from './tokens/rotate-token.ts'
import { resumableUploadsRoute } from './uploads/resumable-uploads.ts'

/** Adds the routes of all operations. */
export async function addRoutes(
  app: FastifyInstance,
  parts: AppParts & {
    readonly operations: Operations
    /** For the OpenAPI document: the operations that the routes describe. */
    readonly operationList: OperationList
    readonly authorize: Authorizer
    readonly readBody: BodyReader
    readonly respondToListing: ListingResponder
    readonly respondToBytes: BytesResponder
    readonly corsHeaders: CorsPolicy
  },
): Promise<void> {
  const { operations, operationList, catalog, settings, metrics, isStopping } = parts
  const { authorize, readBody, respondToListing } = parts
  const { baseUrl, maxFileSize, corsOrigins } = settings
  const turns = createTurns()
  const readAuthorizedJson = createAuthorizedJsonReader(authorize, readBody)

  listMediaRoute(app, { authorize, respondToListing })
  listItemsRoute(app, {
    ...operations,
    ...{ authorize, turns },
    urlSettings: settings,
    epoch: catalog.epoch,
    vary: varyHeader(corsOrigins, 'Authorization', 'Accept', 'Accept-Encoding'),
  })
  // `register` encloses parsers of content types: those of uploads leave the body unread.
  await app.register((scope) =>
    storeMediaRoute(scope, {
      ...operations,
      authorize,
      readBody,
      urlSettings: settings,
      maxFileSize,
      metrics,
    }),
  )
  await app.register((scope) =>
    resumableUploadsRoute(scope, {
      ...operations,
      authorize,
      readBody,
      catalog,
      baseUrl,
      maxFileSize,
      metrics,
    }),
  )
  findMediaRoute(app, { ...operations, authorize, catalog, urlSettings: settings })
  await app.register((scope) => removeManyMediaRoute(scope, { ...operations, readAuthorizedJson, metrics }))
  await app.register((scope) =>
    editMediaRoute(scope, { ...operations, readAuthorizedJson, urlSettings: settings }),
  )
  await app.register((scope) =>
    trashRoutes(scope, { ...operations, authorize, turns, readAuthorizedJson, urlSettings: settings }),
  )
  removeMediaRoute(app, { ...operations, authorize, metrics })
  const linkParts = {
    ...operations,
    ...{ readAuthorizedJson, catalog, turns },
    limits: {
      maxLifetime: Math.floor(settings.maxLinkLifetime / 1000),
      variantNames: settings.variants.map(({ name }) => name),
    },
  }
  await app.register((scope) => createLinkRoute(scope, linkParts))
  await app.register((scope) => createLinksRoute(scope, linkParts))
  serveBytesRoute(app, parts)
  describeBucketRoute(app, { authorize, catalog })
  describeTokenRoute(app, { authorize, catalog })
  listTokensRoute(app, { authorize, catalog })
  await app.register((scope) => createTokenRoute(scope, { catalog, readAuthorizedJson }))
  revokeTokenRoute(app, { authorize, catalog })
  await app.register((scope) => rotateTokenRoute(scope, { catalog, readAuthorizedJson }))
  explainProblemRoute(app, varyHeader(corsOrigins, 'Accept'))
  monitoringRoutes(app, { ...operations, isStopping, metrics })
  documentationRoutes(app, { operationList, settings })
}
