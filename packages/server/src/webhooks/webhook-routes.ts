import type { ParameterFault } from '../core/faults.ts'
import type { JsonObject } from '../core/json.ts'
import {
  defaultSecretOverlap,
  maxBatch,
  maxSecretOverlap,
  maxWebhookUrl,
  parseWebhookUrl,
  webhookUrlRule,
} from '../core/webhook-rules.ts'
import { malformed } from '../http/bodies.ts'
import type { HttpContext } from '../http/context.ts'
import { noStore } from '../http/headers.ts'
import { type Exchange, type Reply, type Route, route } from '../http/route.ts'
import type { WebhookSettings } from '../storage/catalog/feed/webhooks.ts'
import {
  type ItemChangeKind,
  isItemChangeKind,
  itemChangeKinds,
} from '../storage/catalog/items/item-changes.ts'
import { refusalOfUrl, type WebhookOperations } from './webhook-operations.ts'
import * as openapi from './webhook-routes.openapi.ts'

interface WebhookParts extends Pick<HttpContext, 'authorize' | 'readAuthorizedJson'> {
  readonly webhooks: WebhookOperations
  /** Ranges of addresses that are not refused. */
  readonly allowed: readonly string[]
}

/** `/api/webhooks` (docs/interface.md WH1 to WH3). */
export function webhookRoutes(
  { authorize, readAuthorizedJson }: HttpContext,
  webhooks: WebhookOperations,
  allowed: readonly string[],
): readonly Route[] {
  const parts = { authorize, readAuthorizedJson, webhooks, allowed }
  const readsBody = true
  return [
    route('GET', '/api/webhooks', openapi.listWebhooks, (exchange) => listWebhooks(parts, exchange)),
    route('POST', '/api/webhooks', openapi.createWebhook, (exchange) => createWebhook(parts, exchange), {
      readsBody,
    }),
    route('GET', '/api/webhooks/:id', openapi.describeWebhook, (exchange) => findWebhook(parts, exchange)),
    route('PATCH', '/api/webhooks/:id', openapi.editWebhook, (exchange) => editWebhook(parts, exchange), {
      readsBody,
    }),
    route('DELETE', '/api/webhooks/:id', openapi.deleteWebhook, (exchange) => removeWebhook(parts, exchange)),
    route(
      'POST',
      '/api/webhooks/:id/rotate',
      openapi.rotateWebhook,
      (exchange) => rotateSecret(parts, exchange),
      { readsBody },
    ),
    route('POST', '/api/webhooks/:id/test', openapi.testWebhook, (exchange) => testWebhook(parts, exchange)),
    route('GET', '/api/webhooks/:id/deliveries', openapi.listDeliveries, (exchange) =>
      listDeliveries(parts, exchange),
    ),
    route('POST', '/api/webhooks/:id/deliveries/:number/redeliver', openapi.redeliverWebhook, (exchange) =>
      redeliver(parts, exchange),
    ),
  ]
}

const scope = 'webhooks:manage'

const okJson = (value: object, status = 200): Reply => ({ status, headers: noStore, json: value })

async function listWebhooks({ authorize, webhooks }: WebhookParts, exchange: Exchange): Promise<Reply> {
  const { bucketId } = await authorize(exchange, scope)
  return okJson({ data: await webhooks.list(bucketId) })
}

async function findWebhook({ authorize, webhooks }: WebhookParts, exchange: Exchange<'id'>): Promise<Reply> {
  const { bucketId } = await authorize(exchange, scope)
  return okJson(await webhooks.find(bucketId, exchange.params.id))
}

async function createWebhook(
  { readAuthorizedJson, webhooks, allowed }: WebhookParts,
  exchange: Exchange,
): Promise<Reply> {
  const { caller, body } = await readAuthorizedJson(exchange, scope, ['url', 'kinds', 'batch'])
  const { url, kinds = [], batch = 1 } = readSettings(body, allowed)
  if (url === undefined) throw malformed([{ parameter: 'url', detail: webhookUrlRule }])
  return okJson(await webhooks.create(caller.bucketId, { url, kinds, batch }, caller.actor), 201)
}

async function editWebhook(
  { readAuthorizedJson, webhooks, allowed }: WebhookParts,
  exchange: Exchange<'id'>,
): Promise<Reply> {
  const { caller, body } = await readAuthorizedJson(exchange, scope, ['url', 'kinds', 'batch', 'state'])
  const settings = readSettings(body, allowed)
  return okJson(await webhooks.set(caller.bucketId, exchange.params.id, settings, caller.actor))
}

async function removeWebhook(
  { authorize, webhooks }: WebhookParts,
  exchange: Exchange<'id'>,
): Promise<Reply> {
  const { bucketId, actor } = await authorize(exchange, scope)
  await webhooks.remove(bucketId, exchange.params.id, actor)
  return { status: 204 }
}

async function rotateSecret(
  { readAuthorizedJson, webhooks }: WebhookParts,
  exchange: Exchange<'id'>,
): Promise<Reply> {
  const { caller, body } = await readAuthorizedJson(exchange, scope, ['overlap_seconds'])
  const { overlap_seconds: overlap = defaultSecretOverlap } = body
  if (!isWhole(overlap, 0, maxSecretOverlap))
    throw malformed([
      {
        parameter: 'overlap_seconds',
        detail: `An integer from 0 to ${maxSecretOverlap}.`,
        ...{ minimum: 0, maximum: maxSecretOverlap, unit: 'seconds' },
      },
    ])
  return okJson(await webhooks.rotate(caller.bucketId, exchange.params.id, overlap * 1_000, caller.actor))
}

async function testWebhook({ authorize, webhooks }: WebhookParts, exchange: Exchange<'id'>): Promise<Reply> {
  const { bucketId } = await authorize(exchange, scope)
  return okJson(await webhooks.test(bucketId, exchange.params.id))
}

async function listDeliveries(
  { authorize, webhooks }: WebhookParts,
  exchange: Exchange<'id'>,
): Promise<Reply> {
  const { bucketId } = await authorize(exchange, scope)
  return okJson({ data: await webhooks.deliveries(bucketId, exchange.params.id) })
}

async function redeliver(
  { authorize, webhooks }: WebhookParts,
  exchange: Exchange<'id' | 'number'>,
): Promise<Reply> {
  const { bucketId } = await authorize(exchange, scope)
  const { id, number } = exchange.params
  const parsed = /^[1-9]\d{0,14}$/.test(number) ? Number(number) : 0
  return okJson(await webhooks.redeliver(bucketId, id, parsed))
}

const kindNames = Object.keys(itemChangeKinds).filter(isItemChangeKind)

/** Reads the members of a webhook that a body has. Throws Fault `json-malformed`. */
function readSettings(
  body: JsonObject,
  allowed: readonly string[],
): Partial<WebhookSettings> & { readonly state?: 'on' | 'off' } {
  const faults: ParameterFault[] = []
  const { url, kinds, batch, state } = body
  const href = typeof url === 'string' ? parseWebhookUrl(url) : null
  const refusal = href === null ? webhookUrlRule : refusalOfUrl(href, allowed)
  const names = readKinds(kinds)
  if (url !== undefined && refusal !== null)
    faults.push({
      parameter: 'url',
      detail: refusal,
      ...(href === null && { maximum: maxWebhookUrl, unit: 'characters' }),
    })
  if (kinds !== undefined && names === null)
    faults.push({
      parameter: 'kinds',
      detail: `An array of: ${kindNames.join(', ')}.`,
      accepted: kindNames,
    })
  if (batch !== undefined && !isWhole(batch, 1, maxBatch))
    faults.push({
      parameter: 'batch',
      detail: `An integer from 1 to ${maxBatch}.`,
      ...{ minimum: 1, maximum: maxBatch },
    })
  if (state !== undefined && state !== 'on' && state !== 'off')
    faults.push({ parameter: 'state', detail: '`on` or `off`.', accepted: ['on', 'off'] })
  if (faults.length > 0) throw malformed(faults)
  return {
    ...(href !== null && { url: href }),
    ...(names !== null && { kinds: names }),
    ...(isWhole(batch, 1, maxBatch) && { batch }),
    ...((state === 'on' || state === 'off') && { state }),
  }
}

/** Null if the value is not a list of kinds. */
const readKinds = (value: unknown): readonly ItemChangeKind[] | null =>
  Array.isArray(value) && value.every((one) => typeof one === 'string' && isItemChangeKind(one))
    ? kindNames.filter((kind) => value.includes(kind))
    : null

const isWhole = (value: unknown, least: number, most: number): value is number =>
  typeof value === 'number' && Number.isInteger(value) && value >= least && value <= most
