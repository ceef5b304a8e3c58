import type { Scope, ServiceScope } from '../../packages/server/src/core/token-rules.ts'
import { type RouteRequest, requestsOf } from '../harness/full-bucket.ts'

/** What an operation needs: a scope in one bucket, any token, or a scope of the whole service. */
export type Need = Scope | 'any token' | `service ${ServiceScope}` | `service ${ServiceScope} ${ServiceScope}`

/** Every route of the API. A new route fails route-needs.test.ts until it has an entry here. */
export const routes: Readonly<Record<string, Need>> = {
  'GET /api/media': 'media:read',
  'GET /api/media/': 'media:read',
  'GET /v1/media': 'media:read',
  'GET /v1/media/': 'media:read',
  'POST /api/media': 'media:write',
  'POST /api/media/': 'media:write',
  'POST /api/media/from-url': 'media:write',
  'POST /v1/media': 'media:write',
  'POST /v1/media/': 'media:write',
  'GET /api/items': 'media:read',
  'GET /api/labels': 'media:read',
  'GET /api/changes': 'media:read',
  'GET /api/bucket': 'media:read',
  'GET /api/media/:id': 'media:read',
  'PATCH /api/media/:id': 'media:write',
  'DELETE /api/media/:id': 'media:delete',
  'PATCH /api/media': 'media:write',
  'DELETE /api/media': 'media:delete',
  'POST /api/uploads': 'media:write',
  'POST /api/uploads/': 'media:write',
  'HEAD /api/uploads/:id': 'media:write',
  'PATCH /api/uploads/:id': 'media:write',
  'DELETE /api/uploads/:id': 'media:write',
  'POST /api/uploads/:id': 'media:write',
  'GET /api/trash': 'media:delete',
  'POST /api/trash/restore': 'media:delete',
  'DELETE /api/trash': 'media:delete',
  'POST /api/media/:id/links': 'media:read',
  'POST /api/links': 'media:read',
  'GET /media/:name': 'media:read',
  'GET /media/:name/:filename': 'media:read',
  'GET /api/token': 'any token',
  'GET /api/tokens': 'tokens:manage',
  'POST /api/tokens': 'tokens:manage',
  'DELETE /api/tokens/:id': 'tokens:manage',
  'POST /api/tokens/:id/rotate': 'tokens:manage',
  'GET /api/webhooks': 'webhooks:manage',
  'POST /api/webhooks': 'webhooks:manage',
  'GET /api/webhooks/:id': 'webhooks:manage',
  'PATCH /api/webhooks/:id': 'webhooks:manage',
  'DELETE /api/webhooks/:id': 'webhooks:manage',
  'POST /api/webhooks/:id/rotate': 'webhooks:manage',
  'POST /api/webhooks/:id/test': 'webhooks:manage',
  'GET /api/webhooks/:id/deliveries': 'webhooks:manage',
  'POST /api/webhooks/:id/deliveries/:number/redeliver': 'webhooks:manage',
  'GET /api/keys': 'service buckets:manage',
  'POST /api/keys': 'service buckets:manage',
  'DELETE /api/keys/:id': 'service buckets:manage',
  'GET /api/audit': 'service buckets:manage media:read',
  'GET /api/buckets': 'service buckets:manage',
  'POST /api/buckets': 'service buckets:manage',
  'GET /api/buckets/:name': 'service buckets:manage',
  'PATCH /api/buckets/:name': 'service buckets:manage',
  'DELETE /api/buckets/:name': 'service buckets:manage',
  'GET /api/buckets/:name/usage': 'service buckets:manage',
  'GET /api/usage': 'service buckets:manage',
  'POST /api/buckets/:name/tokens': 'service tokens:manage',
}

export const nameOf = ({ method, pattern }: Pick<RouteRequest, 'method' | 'pattern'>) =>
  `${method === 'HEAD' && !pattern.startsWith('/api/uploads') ? 'GET' : method} ${pattern}`

/** A request to each of them. */
export const requests = requestsOf(({ needs }) => needs !== 'nothing')
