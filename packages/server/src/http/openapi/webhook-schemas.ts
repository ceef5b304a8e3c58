import { type Static, Type } from 'typebox'
import {
  defaultSecretOverlap,
  maxBatch,
  maxSecretOverlap,
  maxWebhookUrl,
  type WebhookState,
  webhookStates,
  webhookUrlRule,
} from '../../core/webhook-rules.ts'
import { type ItemChangeKind, itemChangeKinds } from '../../storage/catalog/items/item-changes.ts'
import { closedObject, nullable } from './schemas.ts'

// The schemas of requests and responses with webhooks.

const time = (description: string) => Type.String({ format: 'date-time', description })

const url = Type.String({ format: 'uri', maxLength: maxWebhookUrl, description: webhookUrlRule })
const kinds = Type.Array(
  Type.Unsafe<ItemChangeKind>({ type: 'string', enum: Object.keys(itemChangeKinds) }),
  {
    uniqueItems: true,
    description: 'The kinds of changes that it delivers; empty for all.',
  },
)
const batch = Type.Integer({
  minimum: 1,
  maximum: maxBatch,
  description: 'The most changes in one delivery. With 1, each delivery is one change, and otherwise a list.',
})

export const WebhookParams = Type.Object({
  id: Type.String({ description: 'The id of a webhook.', examples: ['wh_4k9m2x7c1v8q'] }),
})
export type WebhookParams = Static<typeof WebhookParams>

export const DeliveryParams = Type.Object({
  id: Type.String({ description: 'The id of a webhook.', examples: ['wh_4k9m2x7c1v8q'] }),
  number: Type.Integer({ minimum: 1, description: 'The number of a delivery.', examples: [12] }),
})

export const NewWebhookBody = Type.Object(
  {
    url,
    kinds: Type.Optional(Type.Unsafe<readonly ItemChangeKind[]>({ ...kinds, default: [] })),
    batch: Type.Optional(Type.Unsafe<number>({ ...batch, default: 1 })),
  },
  { title: 'NewWebhook', description: 'The properties of a new webhook.', additionalProperties: false },
)

export const WebhookEditBody = Type.Object(
  {
    url: Type.Optional(url),
    kinds: Type.Optional(kinds),
    batch: Type.Optional(batch),
    state: Type.Optional(
      Type.Unsafe<'on' | 'off'>({
        type: 'string',
        enum: ['on', 'off'],
        description: '`on` continues after the last delivery, also after a state `gone` or `failed`.',
      }),
    ),
  },
  { title: 'WebhookEdit', description: 'Changes of a webhook.', additionalProperties: false },
)

export const WebhookRotation = Type.Object(
  {
    overlap_seconds: Type.Optional(
      Type.Integer({
        minimum: 0,
        maximum: maxSecretOverlap,
        default: defaultSecretOverlap,
        description: 'The seconds for which the replaced secret signs too.',
      }),
    ),
  },
  { title: 'WebhookRotation', description: 'How a secret is replaced.', additionalProperties: false },
)

const webhookMembers = {
  id: Type.String({ description: 'The id.' }),
  url: Type.String({ format: 'uri', description: 'Where deliveries are sent.' }),
  kinds: Type.Array(Type.String({ examples: Object.keys(itemChangeKinds) }), {
    uniqueItems: true,
    description:
      'The kinds of changes that it delivers, also those that only a newer version of the service knows; empty for all.',
  }),
  batch,
  state: Type.Unsafe<WebhookState>({
    type: 'string',
    enum: [...webhookStates],
    description:
      '`on` delivers. `off` was switched off by a request or a command, `gone` by a response 410, `failed` after three days of failures.',
  }),
  created_at: time('The time of creation, in UTC.'),
  failing_since: nullable(time('When the first of the present failures was; null if there are none.')),
  failures: Type.Integer({ minimum: 0, description: 'Attempts that have failed since.' }),
  next_attempt_at: nullable(time('The next attempt after a failure; null if none waits.')),
}

export const WebhookObject = closedObject('Webhook', 'A webhook, without its secret.', webhookMembers)

export const WebhookList = closedObject('WebhookList', 'The webhooks of the bucket.', {
  data: Type.Array(WebhookObject, { description: 'The webhooks, oldest first.' }),
})

export const CreatedWebhook = closedObject('CreatedWebhook', 'A webhook with a new secret.', {
  ...webhookMembers,
  secret: Type.String({ description: 'The secret, which no other response has.' }),
})

export const DeliveryObject = closedObject('WebhookDelivery', 'One attempt to deliver.', {
  number: Type.Integer({ minimum: 1, description: 'Increases with each delivery of the webhook.' }),
  message_id: Type.String({ description: 'The header `webhook-id`: the same for the same changes.' }),
  type: Type.String({ description: 'The type of the message, such as `item.added`.' }),
  time: time('When it was sent, in UTC.'),
  duration: Type.Integer({ minimum: 0, description: 'Milliseconds until the response.' }),
  changes: Type.Integer({ minimum: 0, description: 'The number of changes in it.' }),
  delivered: Type.Boolean({ description: 'Whether the receiver responded with a status of 2xx.' }),
  status: nullable(
    Type.Integer({
      minimum: 100,
      maximum: 999,
      description: 'The status of the response; null without one.',
    }),
  ),
  reason: nullable(Type.String({ description: 'Why it failed; null if it was delivered.' })),
  response: Type.String({ description: 'The beginning of the response’s body.' }),
  requested: Type.Boolean({ description: 'Whether somebody asked for it: a test, or a repetition.' }),
})

export const DeliveryList = closedObject('WebhookDeliveryList', 'The last deliveries of a webhook.', {
  data: Type.Array(DeliveryObject, { description: 'The deliveries, latest first.' }),
})
