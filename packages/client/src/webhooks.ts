import type { CallOptions } from './client-options.ts'
import { acceptJson, sendJson } from './json.ts'
import { readNothing } from './responses.ts'
import { type SendSettings, send } from './send.ts'
import { arrayOf, type Check, count, countOrNull, flag, objectOf, parse, text, textOrNull } from './shape.ts'
import type { Endpoints } from './urls.ts'

/** A webhook of the bucket, as on the wire; never its secret. Times are RFC 3339, UTC. */
export interface Webhook {
  readonly id: string
  readonly url: string
  /** The kinds of changes that it delivers, such as `added`; empty for all. */
  readonly kinds: readonly string[]
  /** The most changes in one delivery. With 1, each delivery is one change, and otherwise a list. */
  readonly batch: number
  /** `on` delivers. `off` was switched off by somebody, `gone` by a response 410, `failed` after three days of failures. */
  readonly state: string
  readonly created_at: string
  /** When the first of the present failures was; null if there are none. */
  readonly failing_since: string | null
  readonly failures: number
  /** Null if no attempt waits. */
  readonly next_attempt_at: string | null
}

/** A webhook with its secret, which only its creation and a rotation return. */
export interface CreatedWebhook extends Webhook {
  readonly secret: string
}

/** One attempt to deliver, as on the wire. */
export interface WebhookDelivery {
  readonly number: number
  /** The header `webhook-id`: the same for the same changes. */
  readonly message_id: string
  readonly type: string
  /** RFC 3339, UTC. */
  readonly time: string
  /** Milliseconds. */
  readonly duration: number
  readonly changes: number
  readonly delivered: boolean
  /** Null if there was no response. */
  readonly status: number | null
  /** Why it failed; null if it was delivered. */
  readonly reason: string | null
  /** The beginning of the response's body. */
  readonly response: string
  /** Whether somebody asked for it: a test, or a repetition. */
  readonly requested: boolean
}

export interface NewWebhook {
  readonly url: string
  readonly kinds?: readonly string[] | undefined
  readonly batch?: number | undefined
}

export interface WebhookChanges extends Partial<NewWebhook> {
  /** `on` continues after the last delivery. */
  readonly state?: 'on' | 'off' | undefined
}

export interface SecretRotation extends CallOptions {
  /** Seconds for which the replaced secret signs too, up to 7 days. Default: one day. */
  readonly overlapSeconds?: number | undefined
}

/**
 * Manages the webhooks of the bucket. The client's token needs the scope `webhooks:manage`. Calls with the id of a webhook that the bucket does not
 * have reject with an `AnswerError` of status 404.
 */
export interface WebhookManager {
  list(options?: CallOptions): Promise<readonly Webhook[]>

  /** Creates a webhook, which delivers the changes from then on. It is not retried, because a retry could create a second one. */
  create(webhook: NewWebhook, options?: CallOptions): Promise<CreatedWebhook>

  /** Changes the given members. */
  update(id: string, changes: WebhookChanges, options?: CallOptions): Promise<Webhook>

  /** Replaces the secret. Like `create`, it is not retried. */
  rotate(id: string, options?: SecretRotation): Promise<CreatedWebhook>

  delete(id: string, options?: CallOptions): Promise<void>

  /** Sends a message of the type `webhook.test` at once. Resolves also if it was not delivered. */
  test(id: string, options?: CallOptions): Promise<WebhookDelivery>

  /** The last 100 deliveries, latest first. */
  deliveries(id: string, options?: CallOptions): Promise<readonly WebhookDelivery[]>

  /** Sends the changes of a delivery again. Resolves also if they were not delivered. */
  redeliver(id: string, number: number, options?: CallOptions): Promise<WebhookDelivery>
}

const webhookMembers = {
  id: text,
  url: text,
  kinds: arrayOf(text),
  batch: count,
  state: text,
  created_at: text,
  failing_since: textOrNull,
  failures: count,
  next_attempt_at: textOrNull,
}
const webhookShape: Check<Webhook> = objectOf<Webhook>(webhookMembers)
const createdShape: Check<CreatedWebhook> = objectOf<CreatedWebhook>({ ...webhookMembers, secret: text })
const deliveryShape: Check<WebhookDelivery> = objectOf<WebhookDelivery>({
  number: count,
  message_id: text,
  type: text,
  time: text,
  duration: count,
  changes: count,
  delivered: flag,
  status: countOrNull,
  reason: textOrNull,
  response: text,
  requested: flag,
})
const listOf = <T>(item: Check<T>): Check<{ readonly data: readonly T[] }> =>
  objectOf<{ readonly data: readonly T[] }>({ data: arrayOf(item) })

export function createWebhookManager(settings: SendSettings, { webhooks }: Endpoints): WebhookManager {
  const urlOf = (id: string) => `${webhooks}/${encodeURIComponent(id)}`

  const get = <T>(url: string, what: string, shape: Check<T>, { signal }: CallOptions): Promise<T> =>
    sendJson(settings, { url, signal, what, read: (value) => parse(what, shape, value) })

  const change = <T>(
    method: 'POST' | 'PATCH',
    url: string,
    what: string,
    shape: Check<T>,
    json: object | undefined,
    { signal }: CallOptions,
  ): Promise<T> =>
    sendJson(settings, {
      method,
      url,
      ...(json !== undefined && { json }),
      repeatable: method === 'PATCH',
      signal,
      what,
      read: (value) => parse(what, shape, value),
    })

  return Object.freeze({
    async list(options: CallOptions = {}) {
      return (await get(webhooks, 'a list of webhooks', listOf(webhookShape), options)).data
    },

    async create({ url, kinds, batch }: NewWebhook, options: CallOptions = {}) {
      return await change('POST', webhooks, 'a new webhook', createdShape, { url, kinds, batch }, options)
    },

    async update(id: string, { url, kinds, batch, state }: WebhookChanges, options: CallOptions = {}) {
      const changes = { url, kinds, batch, state }
      return await change('PATCH', urlOf(id), 'a webhook', webhookShape, changes, options)
    },

    async rotate(id: string, { overlapSeconds, ...options }: SecretRotation = {}) {
      const body = { overlap_seconds: overlapSeconds }
      return await change('POST', `${urlOf(id)}/rotate`, 'a webhook', createdShape, body, options)
    },

    async delete(id: string, { signal }: CallOptions = {}) {
      await send(settings, {
        method: 'DELETE',
        url: urlOf(id),
        headers: acceptJson,
        repeatable: true,
        signal,
        read: readNothing,
      })
    },

    async test(id: string, options: CallOptions = {}) {
      return await change('POST', `${urlOf(id)}/test`, 'a delivery', deliveryShape, undefined, options)
    },

    async deliveries(id: string, options: CallOptions = {}) {
      const url = `${urlOf(id)}/deliveries`
      return (await get(url, 'a list of deliveries', listOf(deliveryShape), options)).data
    },

    async redeliver(id: string, number: number, options: CallOptions = {}) {
      const url = `${urlOf(id)}/deliveries/${number}/redeliver`
      return await change('POST', url, 'a delivery', deliveryShape, undefined, options)
    },
  })
}
