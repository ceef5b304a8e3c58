import type { SignLinks } from '../access/signed-links.ts'
import { bucketDeleted, Fault } from '../core/faults.ts'
import { addressFamily, inRanges, isPublicAddress, plainAddress } from '../core/ip-address.ts'
import type { UrlSettings } from '../core/item-urls.ts'
import type { Actor } from '../core/token-rules.ts'
import {
  isWebhookId,
  maxBatch,
  newWebhookId,
  newWebhookSecret,
  type WebhookId,
} from '../core/webhook-rules.ts'
import type { ValueOf } from '../http/openapi/schemas.ts'
import type * as schemas from '../http/openapi/webhook-schemas.ts'
import type { Catalog } from '../storage/catalog/catalog.ts'
import type { FeedPlace, ItemChange } from '../storage/catalog/feed/feed.ts'
import type { StoredDelivery } from '../storage/catalog/feed/webhook-deliveries.ts'
import type { Webhook, WebhookReader, WebhookSettings } from '../storage/catalog/feed/webhooks.ts'
import type { BucketId } from '../storage/catalog/records.ts'
import { attempt } from './attempt.ts'
import type { Poster } from './guarded-post.ts'
import { isWanted, lostMessageOf, type Message, messageOf, testMessageOf } from './messages.ts'

/** A webhook as the API represents it (docs/interface.md WH1). */
export type WebhookObject = ValueOf<typeof schemas.WebhookObject>

/** A webhook with its secret, which only its creation and a rotation return. */
type CreatedWebhook = ValueOf<typeof schemas.CreatedWebhook>

export type DeliveryObject = ValueOf<typeof schemas.DeliveryObject>

const timeOrNull = (time: number | null): string | null =>
  time === null ? null : new Date(time).toISOString()

export const webhookObject = (webhook: Webhook): WebhookObject => ({
  id: webhook.id,
  url: webhook.url,
  kinds: webhook.kinds,
  batch: webhook.batch,
  state: webhook.state,
  created_at: new Date(webhook.createdAt).toISOString(),
  failing_since: timeOrNull(webhook.failingSince),
  failures: webhook.failures,
  next_attempt_at: timeOrNull(webhook.state === 'on' ? webhook.nextAttempt : null),
})

const deliveryObject = (delivery: StoredDelivery): DeliveryObject => ({
  number: delivery.number,
  message_id: delivery.messageId,
  type: delivery.type,
  time: new Date(delivery.time).toISOString(),
  duration: delivery.duration,
  changes: delivery.changes,
  delivered: delivery.reason === null,
  status: delivery.status,
  reason: delivery.reason,
  response: delivery.response,
  requested: delivery.isManual,
})

const webhookUnknown = (): Fault => new Fault('webhook-unknown', 'The bucket has no webhook with this id.')

const deliveryUnknown = (detail: string): Fault => new Fault('webhook-delivery-unknown', detail)

/** The webhook of the bucket with this id, which may be any text. Throws Fault `webhook-unknown`. */
async function requireWebhook(
  catalog: Pick<Catalog, 'findWebhook'>,
  bucketId: BucketId,
  id: string,
): Promise<WebhookReader> {
  const webhook = isWebhookId(id) ? await catalog.findWebhook(id) : null
  if (webhook === null || webhook.bucketId !== bucketId) throw webhookUnknown()
  return webhook
}

/** Throws Fault `webhook-unknown` unless `change` has found the webhook, and returns its new state. */
async function changed(
  catalog: Pick<Catalog, 'findWebhook'>,
  id: WebhookId,
  change: Promise<boolean>,
): Promise<WebhookReader> {
  const isFound = await change
  const webhook = isFound ? await catalog.findWebhook(id) : null
  if (webhook === null) throw webhookUnknown()
  return webhook
}

const requireId = (id: string): WebhookId => {
  if (isWebhookId(id)) return id
  throw webhookUnknown()
}

/** Deliveries of a bucket that people have asked for, and that are sent at the same time. */
const maxSending = 3

interface WebhookParts {
  readonly catalog: Catalog
  readonly poster: Poster
  readonly urls: UrlSettings
  readonly signLinks: SignLinks
  readonly now: () => number
}

/** What people do with the webhooks of a bucket. Ids may be any texts. */
export class WebhookOperations {
  readonly #parts: WebhookParts
  /** The deliveries of each bucket that are being sent. */
  readonly #sending = new Map<BucketId, number>()

  constructor(parts: WebhookParts) {
    this.#parts = parts
  }

  async list(bucketId: BucketId): Promise<readonly WebhookObject[]> {
    return (await this.#parts.catalog.listWebhooks(bucketId)).map(webhookObject)
  }

  async find(bucketId: BucketId, id: string): Promise<WebhookObject> {
    return webhookObject(await requireWebhook(this.#parts.catalog, bucketId, id))
  }

  /** Throws Fault `webhooks-too-many`. */
  async create(bucketId: BucketId, settings: WebhookSettings, by?: Actor): Promise<CreatedWebhook> {
    const { catalog, now } = this.#parts
    const [id, secret] = [newWebhookId(), newWebhookSecret()]
    await catalog.addWebhook({ ...settings, id, bucketId, secret, createdAt: now() }, by)
    const webhook = await catalog.findWebhook(id)
    if (webhook === null) throw bucketDeleted()
    return { ...webhookObject(webhook), secret }
  }

  async set(
    bucketId: BucketId,
    id: string,
    settings: Parameters<Catalog['setWebhook']>[2],
    by?: Actor,
  ): Promise<WebhookObject> {
    const { catalog } = this.#parts
    const known = requireId(id)
    return webhookObject(await changed(catalog, known, catalog.setWebhook(bucketId, known, settings, by)))
  }

  /** `overlap` is in milliseconds. */
  async rotate(bucketId: BucketId, id: string, overlap: number, by?: Actor): Promise<CreatedWebhook> {
    const { catalog, now } = this.#parts
    const known = requireId(id)
    const secret = newWebhookSecret()
    const rotation = catalog.rotateWebhookSecret(bucketId, known, secret, now() + overlap, by)
    return { ...webhookObject(await changed(catalog, known, rotation)), secret }
  }

  async remove(bucketId: BucketId, id: string, by?: Actor): Promise<void> {
    if (!(await this.#parts.catalog.removeWebhook(bucketId, requireId(id), by))) throw webhookUnknown()
  }

  async deliveries(bucketId: BucketId, id: string): Promise<readonly DeliveryObject[]> {
    const { catalog } = this.#parts
    const webhook = await requireWebhook(catalog, bucketId, id)
    return (await catalog.listWebhookDeliveries(webhook.id)).map(deliveryObject)
  }

  async test(bucketId: BucketId, id: string): Promise<DeliveryObject> {
    const { catalog, now } = this.#parts
    const webhook = await requireWebhook(catalog, bucketId, id)
    return this.#send(webhook, testMessageOf(webhook, now()))
  }

  /** Sends the changes of a delivery again, with the same id. Throws Fault `webhook-delivery-unknown`. */
  async redeliver(bucketId: BucketId, id: string, number: number): Promise<DeliveryObject> {
    const { catalog } = this.#parts
    const webhook = await requireWebhook(catalog, bucketId, id)
    const delivery = (await catalog.listWebhookDeliveries(webhook.id)).find((one) => one.number === number)
    if (delivery === undefined) throw deliveryUnknown('The webhook has no such delivery any more.')
    return this.#send(webhook, { ...(await this.#repeated(webhook, delivery)), id: delivery.messageId })
  }

  /** The message of a delivery with the items as they are now. */
  async #repeated(webhook: WebhookReader, { range, type }: StoredDelivery): Promise<Message> {
    const { catalog, urls, signLinks, now } = this.#parts
    if (range === null)
      return type === 'changes.lost'
        ? lostMessageOf(webhook, catalog.epoch, now())
        : testMessageOf(webhook, now())
    const found = await changesWithin(catalog, webhook, range)
    if (found.length === 0)
      throw deliveryUnknown('The webhook no longer selects the changes of this delivery.')
    const signer = webhook.signsUrls ? await signLinks(null) : null
    // As many as the delivery had at the most, whatever the webhook asks for now.
    return messageOf(
      { ...webhook, batch: type === 'items.changed' ? maxBatch : 1 },
      found.slice(0, maxBatch),
      { epoch: catalog.epoch, urls, signer },
    )
  }

  /** Sends a message at once, and stores the delivery. */
  async #send(webhook: WebhookReader, message: Message): Promise<DeliveryObject> {
    const { catalog, poster, now } = this.#parts
    const { id, bucketId } = webhook
    const others = this.#sending.get(bucketId) ?? 0
    if (others >= maxSending)
      throw new Fault(
        'webhook-deliveries-too-many',
        `The service is sending ${maxSending} deliveries of this bucket that were asked for; try again.`,
      )
    this.#sending.set(bucketId, others + 1)
    const connection = poster.open()
    try {
      const { signal } = new AbortController()
      const options = { post: connection.post, signal, now, isManual: true }
      const { delivery } = await attempt(webhook, message, options)
      const number = await catalog.recordManualDelivery(id, delivery)
      if (number === null) throw webhookUnknown()
      return deliveryObject({ ...delivery, number })
    } finally {
      connection.close()
      const left = (this.#sending.get(bucketId) ?? 1) - 1
      if (left > 0) this.#sending.set(bucketId, left)
      else this.#sending.delete(bucketId)
    }
  }
}

/** The changes of a delivery that the webhook wants now. Throws Fault `webhook-delivery-unknown`. */
async function changesWithin(
  catalog: Pick<Catalog, 'readChanges'>,
  { bucketId, kinds }: WebhookReader,
  range: NonNullable<StoredDelivery['range']>,
): Promise<readonly ItemChange[]> {
  const found: ItemChange[] = []
  let place: FeedPlace = { from: range.first }
  for (let hasMore = true; hasMore; ) {
    const rows = await catalog.readChanges(bucketId, place, maxBatch)
    if (rows === null) throw deliveryUnknown('The feed no longer has the changes of this delivery.')
    found.push(...rows.changes.filter(({ number, kind }) => number <= range.last && isWanted(kinds, kind)))
    hasMore = rows.hasMore && rows.next < range.last
    place = rows.next
  }
  return found
}

/** Why a URL is refused when it is stored: its host is an address that is not called. Names are looked up for each request. */
export function refusalOfUrl(url: string, allowed: readonly string[]): string | null {
  const host = new URL(url).hostname.replace(/^\[|\]$/g, '')
  const address = /(?:^|\.)localhost\.?$/i.test(host) ? '127.0.0.1' : plainAddress(host)
  if (addressFamily(address) === 0 || isPublicAddress(address) || inRanges(allowed)(address)) return null
  return 'Its host is an address that webhooks must not call, such as one of a private network (MEDIABUCKET_WEBHOOK_ALLOW).'
}
