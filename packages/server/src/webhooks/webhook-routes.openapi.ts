import { jsonBodyProblems } from '../http/bodies.ts'
import { exampleBase, type OperationDescription } from '../http/openapi/description.ts'
import {
  CreatedWebhook,
  DeliveryList,
  DeliveryObject,
  DeliveryParams,
  NewWebhookBody,
  WebhookEditBody,
  WebhookList,
  WebhookObject,
  WebhookParams,
  WebhookRotation,
} from '../http/openapi/webhook-schemas.ts'

const sampleWebhook = {
  id: 'wh_4k9m2x7c1v8q',
  url: `${exampleBase}/hooks`,
  kinds: ['added', 'removed'],
  batch: 1,
  state: 'on',
  created_at: '2026-11-01T09:30:00.000Z',
  failing_since: null,
  failures: 0,
  next_attempt_at: null,
}

const sampleDelivery = {
  number: 12,
  message_id: 'msg_0d8f6c7a1b2e3d4c5b6a798897a6b5c4',
  type: 'item.added',
  time: '2026-11-01T09:31:00.000Z',
  duration: 48,
  changes: 1,
  delivered: true,
  status: 204,
  reason: null,
  response: '',
  requested: false,
}

const url = `${exampleBase}/api/webhooks`
const bearer = '-H "Authorization: Bearer $TOKEN"'
const bodyOf = (text: string) => `${bearer} -H 'Content-Type: application/json' \\\n  -d '${text}'`

type Content = NonNullable<OperationDescription['responses'][number]['content']>[string]

const response = (description: string, schema: Content['schema'], example: unknown) => ({
  description,
  headers: ['Cache-Control' as const],
  content: { 'application/json': { ...(schema && { schema }), examples: { example } } },
})

const common = { tag: 'Webhooks', needs: 'webhooks:manage' } as const

export const listWebhooks: OperationDescription = {
  ...common,
  operationId: 'listWebhooks',
  summary: 'List the webhooks of the bucket',
  description: 'Returns at most 10 webhooks, without their secrets.',
  rules: 'WH1',
  responses: { 200: response('The webhooks.', WebhookList, { data: [sampleWebhook] }) },
  problems: [],
  curl: `curl ${bearer} ${url}`,
}

export const createWebhook: OperationDescription = {
  ...common,
  operationId: 'createWebhook',
  summary: 'Create a webhook',
  description:
    'Creates a webhook that delivers the changes of the bucket from now on. Only this response and a rotation have the secret.',
  rules: 'WH2',
  body: {
    description: 'The properties of the webhook.',
    content: {
      'application/json': {
        schema: NewWebhookBody,
        examples: { 'new and removed items': { url: sampleWebhook.url, kinds: sampleWebhook.kinds } },
      },
    },
  },
  responses: {
    201: response('Created.', CreatedWebhook, { ...sampleWebhook, secret: 'whsec_…' }),
  },
  problems: [...jsonBodyProblems, 'webhooks-too-many', 'storage-full'],
  curl: `curl ${bodyOf(`{"url": "${sampleWebhook.url}"}`)} ${url}`,
}

export const describeWebhook: OperationDescription = {
  ...common,
  operationId: 'describeWebhook',
  summary: 'Get a webhook',
  description: 'Returns the webhook, without its secret.',
  rules: 'WH1',
  path: WebhookParams,
  responses: { 200: response('The webhook.', WebhookObject, sampleWebhook) },
  problems: ['webhook-unknown'],
  curl: `curl ${bearer} ${url}/${sampleWebhook.id}`,
}

export const editWebhook: OperationDescription = {
  ...common,
  operationId: 'editWebhook',
  summary: 'Change a webhook, or switch it on or off',
  description:
    'Changes the given members. The next delivery follows at once and continues after the last one that was delivered, unless the webhook is switched off.',
  rules: 'WH2',
  path: WebhookParams,
  body: {
    description: 'The changes.',
    content: {
      'application/json': { schema: WebhookEditBody, examples: { 'switch on': { state: 'on' } } },
    },
  },
  responses: { 200: response('The webhook.', WebhookObject, sampleWebhook) },
  problems: [...jsonBodyProblems, 'webhook-unknown', 'storage-full'],
  curl: `curl -X PATCH ${bodyOf('{"state": "on"}')} ${url}/${sampleWebhook.id}`,
}

export const deleteWebhook: OperationDescription = {
  ...common,
  operationId: 'deleteWebhook',
  summary: 'Delete a webhook',
  description: 'Deletes the webhook with its deliveries. A delivery in progress may still arrive.',
  rules: 'WH2',
  path: WebhookParams,
  responses: { 204: { description: 'Deleted.' } },
  problems: ['webhook-unknown', 'storage-full'],
  curl: `curl -X DELETE ${bearer} ${url}/${sampleWebhook.id}`,
}

export const rotateWebhook: OperationDescription = {
  ...common,
  operationId: 'rotateWebhookSecret',
  summary: 'Replace the secret of a webhook',
  description:
    'Creates a secret. For the overlap, deliveries have a signature with each of both secrets: time to give the new one to the receiver.',
  rules: 'WH3',
  path: WebhookParams,
  body: {
    description: 'How the secret is replaced.',
    content: {
      'application/json': {
        schema: WebhookRotation,
        examples: { 'an overlap of one hour': { overlap_seconds: 3600 } },
      },
    },
  },
  responses: {
    200: response('The webhook with its new secret.', CreatedWebhook, {
      ...sampleWebhook,
      secret: 'whsec_…',
    }),
  },
  problems: [...jsonBodyProblems, 'webhook-unknown', 'storage-full'],
  curl: `curl ${bodyOf('{"overlap_seconds": 3600}')} ${url}/${sampleWebhook.id}/rotate`,
}

export const testWebhook: OperationDescription = {
  ...common,
  operationId: 'testWebhook',
  summary: 'Send a test',
  description:
    'Sends a message of the type `webhook.test` at once, also if the webhook is switched off, and returns what the receiver responded. A delivery that waits after a failure is repeated at once if the test succeeds.',
  rules: 'WH10',
  path: WebhookParams,
  responses: {
    200: response('The delivery, which may have failed.', DeliveryObject, {
      ...sampleDelivery,
      type: 'webhook.test',
      changes: 0,
      requested: true,
    }),
  },
  problems: ['webhook-unknown', 'webhook-deliveries-too-many', 'storage-full'],
  curl: `curl -X POST ${bearer} ${url}/${sampleWebhook.id}/test`,
}

export const listDeliveries: OperationDescription = {
  ...common,
  operationId: 'listWebhookDeliveries',
  summary: 'List the last deliveries of a webhook',
  description: 'Returns the last 100 attempts, latest first.',
  rules: 'WH10',
  path: WebhookParams,
  responses: { 200: response('The deliveries.', DeliveryList, { data: [sampleDelivery] }) },
  problems: ['webhook-unknown'],
  curl: `curl ${bearer} ${url}/${sampleWebhook.id}/deliveries`,
}

export const redeliverWebhook: OperationDescription = {
  ...common,
  operationId: 'redeliverWebhook',
  summary: 'Repeat a delivery',
  description:
    'Sends the changes of a delivery again at once, with the same id and the items as they are now, and returns what the receiver responded.',
  rules: 'WH10',
  path: DeliveryParams,
  responses: {
    200: response('The delivery, which may have failed.', DeliveryObject, {
      ...sampleDelivery,
      number: 13,
      requested: true,
    }),
  },
  problems: ['webhook-unknown', 'webhook-delivery-unknown', 'webhook-deliveries-too-many', 'storage-full'],
  curl: `curl -X POST ${bearer} ${url}/${sampleWebhook.id}/deliveries/12/redeliver`,
}
