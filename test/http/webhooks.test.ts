import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { expectProblem } from '../harness/problem.ts'
import { type Received, type Receiver, respondWith, startReceiver } from '../harness/receiver.ts'
import { startServer, type TestServer } from '../harness/server.ts'
import { makeToken } from '../harness/token.ts'
import { uniqueName } from '../harness/unique-name.ts'
import { until } from '../harness/until.ts'
import {
  readCreatedWebhook,
  readDelivery,
  readDeliveryList,
  readItem,
  readWebhook,
  readWebhookList,
} from '../harness/wire.ts'

let server: TestServer
beforeAll(async () => {
  server = await startServer({ MEDIABUCKET_WEBHOOK_ALLOW: '127.0.0.1', MEDIABUCKET_AUDIT: 'changes' })
})
afterAll(() => server[Symbol.asyncDispose]())

const scopes = 'media:read,media:write,media:delete,webhooks:manage'

/** A bucket with a receiver. */
async function bucketWithReceiver() {
  const bucket = uniqueName('bucket')
  const { authorization } = await makeToken(server, '--bucket', bucket, '--scope', scopes)
  const receiver = await startReceiver()
  onTestFinished(receiver.close)
  const send = (method: string, path: string, body?: unknown) =>
    server.request(path, {
      method,
      headers: { authorization, ...(body === undefined ? {} : { 'content-type': 'application/json' }) },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    })
  return {
    bucket,
    authorization,
    receiver,
    send,
    async create(settings: object = {}) {
      const response = await send('POST', '/api/webhooks', { url: receiver.url, ...settings })
      expect([response.status, response.headers.get('cache-control')]).toEqual([201, 'no-store'])
      const webhook = readCreatedWebhook(await response.json())
      receiver.secrets.add(webhook.secret)
      return webhook
    },
    async upload(content = 'x') {
      const response = await server.request('/api/media', {
        method: 'POST',
        body: content,
        headers: { authorization },
      })
      return readItem(response)
    },
    describe: async (id: string) => readWebhook(await (await send('GET', `/api/webhooks/${id}`)).json()),
    deliveries: async (id: string) =>
      readDeliveryList(await (await send('GET', `/api/webhooks/${id}/deliveries`)).json()).data,
  }
}

const changesOf = (received: readonly Received[]) =>
  received.flatMap(({ changes }) => changes.map(({ type, data }) => [type, data.item_id]))

const arrived = (receiver: Receiver, count: number) =>
  until(`${count} changes arrive`, () => changesOf(receiver.received).length >= count)

test('WH3, WH4, WH5 each change arrives once, in order, signed, when its effect can be read', async () => {
  const { bucket, receiver, create, upload, send } = await bucketWithReceiver()
  await create()
  const statuses: number[] = []
  receiver.respond = async ({ changes: [change] }, response) => {
    const url = change?.data.item?.url
    if (url !== undefined) statuses.push((await fetch(url)).status)
    response.writeHead(200).end('ok')
  }
  const item = await upload()
  await arrived(receiver, 1)
  await send('PATCH', `/api/media/${item.id}`, { caption: 'a' })
  await arrived(receiver, 2)
  await send('DELETE', `/api/media/${item.id}`)
  await arrived(receiver, 3)
  expect(changesOf(receiver.received)).toEqual([
    ['item.added', item.id],
    ['item.edited', item.id],
    ['item.removed', item.id],
  ])
  expect(receiver.refused).toEqual([])
  expect(statuses).toEqual([200, 200])
  const [added, edited, removed] = receiver.received
  expect(JSON.parse(added?.body ?? '')).toEqual({
    type: 'item.added',
    timestamp: expect.stringMatching(/^\d{4}-.*Z$/),
    data: { number: expect.any(Number), bucket, item_id: item.id, item },
  })
  expect(edited?.changes[0]?.data.item?.caption).toBe('a')
  expect(removed?.changes[0]?.data.item).toBeNull()
  expect(added?.headers).toMatchObject({
    'content-type': 'application/json',
    'user-agent': expect.stringMatching(/^mediabucket\/\d/),
    'webhook-id': expect.stringMatching(/^msg_/),
  })
  expect(added?.headers).not.toHaveProperty('cookie')
  expect(added?.headers).not.toHaveProperty('authorization')
})

test('WH1, WH2 webhooks are created, listed, changed and deleted, and their secrets are shown once', async () => {
  const { receiver, create, send, upload } = await bucketWithReceiver()
  const { secret, ...webhook } = await create({ kinds: ['removed', 'added', 'added'], batch: 5 })
  expect(webhook).toMatchObject({ url: receiver.url, kinds: ['added', 'removed'], batch: 5, state: 'on' })
  const list = await send('GET', '/api/webhooks')
  expect(list.headers.get('cache-control')).toBe('no-store')
  expect(readWebhookList(await list.json())).toEqual({ data: [webhook] })
  const edited = await send('PATCH', `/api/webhooks/${webhook.id}`, { state: 'off', kinds: [] })
  expect(readWebhook(await edited.json())).toEqual({ ...webhook, state: 'off', kinds: [] })
  await upload()
  expect((await send('DELETE', `/api/webhooks/${webhook.id}`)).status).toBe(204)
  await expectProblem(await send('DELETE', `/api/webhooks/${webhook.id}`), 404, 'webhook-unknown')
  expect(receiver.received).toEqual([])
})

test('WH2, WH9 a URL that must not be called, and other wrong members, are refused', async () => {
  const { send } = await bucketWithReceiver()
  const refused: readonly object[] = [
    {},
    { url: 'ftp://example.org' },
    { url: 'https://ada:secret@example.org' },
    { url: 'https://example.org/#x' },
    { url: `https://example.org/${'x'.repeat(2_048)}` },
    { url: 'http://10.0.0.1' },
    { url: 'http://localhost:1.' },
    { url: 'http://[::ffff:169.254.169.254]/' },
    { url: 'http://2852039166/' },
    { url: 'https://example.org', kinds: ['new'] },
    { url: 'https://example.org', batch: 101 },
    { url: 'https://example.org', state: 'on' },
  ]
  for (const body of refused)
    await expectProblem(await send('POST', '/api/webhooks', body), 400, 'json-malformed')
  expect(await (await send('GET', '/api/webhooks')).json()).toEqual({ data: [] })
})

test('WH1, T5 webhooks need the scope webhooks:manage, which only a token that has it grants', async () => {
  const { bucket, create } = await bucketWithReceiver()
  const { id } = await create()
  const other = await makeToken(server, '--bucket', bucket, '--scope', 'tokens:manage,media:read')
  const foreign = await makeToken(server, '--bucket', uniqueName('bucket'), '--scope', scopes)
  const send = (method: string, path: string, authorization: string, body?: object) =>
    server.request(path, {
      method,
      headers: { authorization, 'content-type': 'application/json' },
      ...(body && { body: JSON.stringify(body) }),
    })
  const calls = [
    ['GET', '/api/webhooks'],
    ['POST', '/api/webhooks', { url: 'https://example.org' }],
    ['GET', `/api/webhooks/${id}`],
    ['PATCH', `/api/webhooks/${id}`, { state: 'off' }],
    ['DELETE', `/api/webhooks/${id}`],
    ['POST', `/api/webhooks/${id}/rotate`, {}],
    ['POST', `/api/webhooks/${id}/test`],
    ['GET', `/api/webhooks/${id}/deliveries`],
    ['POST', `/api/webhooks/${id}/deliveries/1/redeliver`],
  ] as const
  for (const [method, path, body] of calls) {
    await expectProblem(await send(method, path, other.authorization, body), 403, 'scope-missing')
    if (path !== '/api/webhooks')
      await expectProblem(await send(method, path, foreign.authorization, body), 404, 'webhook-unknown')
  }
  const granted = await send('POST', '/api/tokens', other.authorization, { scopes: ['webhooks:manage'] })
  await expectProblem(granted, 403, 'scope-missing')
})

test('WH3 during a rotation, deliveries have signatures with both secrets', async () => {
  const { receiver, create, send, upload } = await bucketWithReceiver()
  const { id, secret } = await create()
  const rotate = async (body: object) =>
    readCreatedWebhook(await (await send('POST', `/api/webhooks/${id}/rotate`, body)).json()).secret
  const next = await rotate({ overlap_seconds: 60 })
  for (const one of [secret, next]) {
    receiver.secrets.clear()
    receiver.secrets.add(one)
    await send('POST', `/api/webhooks/${id}/test`)
  }
  expect(receiver.received.map(({ type }) => type)).toEqual(['webhook.test', 'webhook.test'])
  expect(`${receiver.received[0]?.headers['webhook-signature']}`.split(' ')).toHaveLength(2)
  receiver.secrets.clear()
  receiver.secrets.add(await rotate({ overlap_seconds: 0 }))
  await upload()
  await arrived(receiver, 1)
  expect(`${receiver.received.at(-1)?.headers['webhook-signature']}`).toMatch(/^v1,[A-Za-z0-9+/]{43}=$/)
  await expectProblem(
    await send('POST', `/api/webhooks/${id}/rotate`, { overlap_seconds: 604_801 }),
    400,
    'json-malformed',
  )
})

test('WH4 a webhook that asks for batches receives lists, and one that selects kinds only these', async () => {
  const { receiver, create, send, upload } = await bucketWithReceiver()
  const { id } = await create({ kinds: ['added', 'removed'], batch: 100 })
  await send('PATCH', `/api/webhooks/${id}`, { state: 'off' })
  const items = [await upload(), await upload(), await upload()]
  for (const item of items) await send('PATCH', `/api/media/${item.id}`, { caption: 'a' })
  await send('DELETE', `/api/media/${items[1]?.id}`)
  await send('PATCH', `/api/webhooks/${id}`, { state: 'on' })
  await arrived(receiver, 4)
  expect(receiver.received).toHaveLength(1)
  expect(changesOf(receiver.received)).toEqual([
    ...items.map((item) => ['item.added', item.id]),
    ['item.removed', items[1]?.id],
  ])
  await upload()
  await arrived(receiver, 5)
  expect(receiver.received.map(({ type }) => type)).toEqual(['items.changed', 'items.changed'])
})

test('WH6 a failed delivery is repeated with the same id and the same changes, in order', async () => {
  const { receiver, create, send, upload, describe, deliveries } = await bucketWithReceiver()
  const { id } = await create({ batch: 2 })
  receiver.respond = respondWith(500, 'broken')
  const first = await upload()
  const failing = await until('a delivery fails', async () => {
    const webhook = await describe(id)
    return webhook.failures > 0 && webhook
  })
  const wait = Date.parse(failing.next_attempt_at ?? '') - Date.parse(failing.failing_since ?? '')
  expect(wait).toBeGreaterThanOrEqual(3_750)
  // On a busy machine it may have failed again.
  if (failing.failures === 1) expect(wait).toBeLessThanOrEqual(6_250)
  const others = [await upload(), await upload()]
  receiver.respond = respondWith(204)
  // A test that succeeds ends the wait.
  expect(readDelivery(await (await send('POST', `/api/webhooks/${id}/test`)).json())).toMatchObject({
    type: 'webhook.test',
    delivered: true,
    status: 204,
    requested: true,
  })
  const lists = () => receiver.received.filter(({ type }) => type === 'items.changed')
  const idsOf = (list: Received | undefined) => list && changesOf([list]).map(([, item]) => item)
  await until('the others arrive', () => idsOf(lists().at(-1))?.includes(others[0]?.id))
  const failed = lists()
  expect(idsOf(failed.pop())).toEqual(others.map((item) => item.id))
  expect(failed.length).toBeGreaterThanOrEqual(2)
  expect(failed.map(idsOf)).toEqual(failed.map(() => [first.id]))
  expect(new Set(failed.map((list) => list.id)).size).toBe(1)
  expect(lists().at(-1)?.id).not.toBe(failed[0]?.id)
  expect(await describe(id)).toMatchObject({ failures: 0, failing_since: null, next_attempt_at: null })
  // Of the repetition, the others and the test.
  const stored = await until('all are stored', async () => {
    const all = await deliveries(id)
    return all.filter(({ delivered }) => delivered).length === 3 && all
  })
  expect(stored.map(({ status, response, delivered }) => [status, response, delivered])).toEqual(
    stored.map((_, index) => (index < 3 ? [204, '', true] : [500, 'broken', false])),
  )
})

test('WH6 Retry-After delays the next attempt, and 410 switches the webhook off until somebody switches it on', async () => {
  const { receiver, create, send, upload, describe } = await bucketWithReceiver()
  const { id } = await create()
  receiver.respond = respondWith(503, '', { 'retry-after': '120' })
  const item = await upload()
  const failing = await until('a delivery fails', async () => {
    const webhook = await describe(id)
    return webhook.failures > 0 && webhook
  })
  const wait = Date.parse(failing.next_attempt_at ?? '') - Date.parse(failing.failing_since ?? '')
  expect(wait).toBeGreaterThanOrEqual(120_000)
  expect(wait).toBeLessThan(121_000)
  receiver.respond = respondWith(410)
  await send('PATCH', `/api/webhooks/${id}`, { state: 'on' })
  await until('the webhook is switched off', async () => (await describe(id)).state === 'gone')
  expect((await describe(id)).next_attempt_at).toBeNull()
  const later = await upload()
  const before = receiver.received.length
  receiver.respond = respondWith(200)
  await send('PATCH', `/api/webhooks/${id}`, { state: 'on' })
  await arrived(receiver, before + 2)
  expect(changesOf(receiver.received.slice(before)).map(([, one]) => one)).toEqual([item.id, later.id])
  const line = await until('the log has a line', () => server.log().find(({ webhook }) => webhook === id))
  expect(line.msg).toMatch(/was switched off, because its receiver responded with 410/)
})

test('WH2, WH6 a late response of the former receiver says nothing about the new one', async () => {
  const { receiver, create, upload, send, describe } = await bucketWithReceiver()
  const { id, secret } = await create()
  await using other = await startReceiver()
  other.secrets.add(secret)
  const { promise: isChanged, resolve: change } = Promise.withResolvers<void>()
  receiver.respond = async (_received, response) => {
    await isChanged
    response.writeHead(410).end()
  }
  const item = await upload()
  await arrived(receiver, 1)
  expect((await send('PATCH', `/api/webhooks/${id}`, { url: other.url })).status).toBe(200)
  change()
  await arrived(other, 1)
  expect(changesOf(other.received)).toEqual([['item.added', item.id]])
  expect(await describe(id)).toMatchObject({ url: other.url, state: 'on', failures: 0 })
})

test('WH10 a delivery is repeated with its id when somebody asks for it, with the items as they are now', async () => {
  const { receiver, create, send, upload, deliveries } = await bucketWithReceiver()
  const { id } = await create()
  const item = await upload()
  await arrived(receiver, 1)
  await send('DELETE', `/api/media/${item.id}`)
  await arrived(receiver, 2)
  const stored = await until('both are stored', async () => {
    const all = await deliveries(id)
    return all.length === 2 && all
  })
  const [, first] = stored
  const again = await send('POST', `/api/webhooks/${id}/deliveries/${first?.number}/redeliver`)
  expect(readDelivery(await again.json())).toMatchObject({
    number: 3,
    message_id: first?.message_id,
    type: 'item.added',
    changes: 1,
    delivered: true,
    requested: true,
  })
  const [sent, , repeated] = receiver.received
  expect(repeated?.id).toBe(sent?.id)
  expect(repeated?.changes).toMatchObject([{ type: 'item.added', data: { item_id: item.id, item: null } }])
  await expectProblem(
    await send('POST', `/api/webhooks/${id}/deliveries/9/redeliver`),
    404,
    'webhook-delivery-unknown',
  )
})

test('WH9, WH10 redirects are not followed, long responses are cut, and unreachable receivers are described', async () => {
  const { receiver, create, send } = await bucketWithReceiver()
  const { id } = await create()
  const try_ = async () => readDelivery(await (await send('POST', `/api/webhooks/${id}/test`)).json())
  receiver.respond = respondWith(307, '', { location: receiver.url })
  expect(await try_()).toMatchObject({
    status: 307,
    delivered: false,
    reason: expect.stringContaining('redirect'),
  })
  expect(receiver.received).toHaveLength(1)
  receiver.respond = respondWith(200, 'é'.repeat(1_000_000))
  expect(await try_()).toMatchObject({ status: 200, delivered: true, response: 'é'.repeat(500) })
  await receiver.close()
  expect(await try_()).toMatchObject({ status: null, reason: 'The request failed with ECONNREFUSED.' })
})

test('WH10 at most three deliveries of a bucket that were asked for are sent at once', async () => {
  const { receiver, create, send } = await bucketWithReceiver()
  const { id } = await create()
  const held = Promise.withResolvers<void>()
  receiver.respond = async (_received, response) => {
    await held.promise
    response.end()
  }
  // Each of several workers sends three.
  const tests: Promise<Response>[] = []
  let refused: Response | null = null
  while (refused === null) {
    const sent = send('POST', `/api/webhooks/${id}/test`)
    const before = receiver.received.length
    refused = await Promise.race([
      sent,
      until('it is sent', () => receiver.received.length > before).then(() => null),
    ])
    if (refused === null) tests.push(sent)
  }
  expect(tests.length).toBeGreaterThanOrEqual(3)
  expect(refused.headers.get('retry-after')).toBe('2')
  await expectProblem(refused, 429, 'webhook-deliveries-too-many')
  held.resolve()
  expect(new Set((await Promise.all(tests)).map(({ status }) => status))).toEqual(new Set([200]))
})

test('WH11, Y1 secrets and the paths of URLs are neither in the log nor in the audit log', async () => {
  const { bucket, receiver, create, send, upload } = await bucketWithReceiver()
  const { id, secret } = await create({ url: `${receiver.url}?key=hidden-key` })
  await send('PATCH', `/api/webhooks/${id}`, { kinds: ['added'] })
  const { secret: next } = readCreatedWebhook(
    await (await send('POST', `/api/webhooks/${id}/rotate`, {})).json(),
  )
  receiver.secrets.add(next)
  await upload()
  await arrived(receiver, 1)
  await send('DELETE', `/api/webhooks/${id}`)
  const { stdout } = await server.command('audit', '--bucket', bucket, '--json')
  const events = stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line))
  const recorded = events.filter(({ metadata }) => metadata.event_code.startsWith('webhook-'))
  expect(recorded.map(({ metadata, entity }) => [metadata.event_code, entity.uid, entity.name])).toEqual(
    ['webhook-create', 'webhook-set', 'webhook-rotate', 'webhook-delete'].map((code) => [
      code,
      id,
      new URL(receiver.url).origin,
    ]),
  )
  expect(recorded[0]?.entity.type).toBe('webhook')
  for (const text of [stdout, server.stderr()]) {
    expect(text).not.toContain('hidden-key')
    for (const one of [secret, next]) expect(text).not.toContain(one.slice('whsec_'.length, 20))
  }
})
