import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { pino } from 'pino'
import { expect, onTestFinished, test } from 'vitest'
import { seededRandom } from '../../../../test/harness/random.ts'
import { until } from '../../../../test/harness/until.ts'
import { signLinksOperation } from '../../src/access/signed-links.ts'
import { newWebhookId, newWebhookSecret } from '../../src/core/webhook-rules.ts'
import type { Catalog } from '../../src/storage/catalog/catalog.ts'
import { openSqliteCatalog } from '../../src/storage/catalog/engines/sqlite/sqlite-catalog.ts'
import { openSqliteInspection } from '../../src/storage/catalog/engines/sqlite/sqlite-inspection.ts'
import type { WebhookSettings } from '../../src/storage/catalog/feed/webhooks.ts'
import type { BucketId } from '../../src/storage/catalog/records.ts'
import { startDeliverer } from '../../src/webhooks/deliverer.ts'
import { createPoster } from '../../src/webhooks/guarded-post.ts'
import { inBlobStore, newBucket, newItems } from '../storage/catalog/samples.ts'
import { tempDirectory } from '../storage/catalog/temp-directory.ts'

const minute = 60_000
const day = 24 * 60 * minute
const urls = { baseUrl: 'https://media.example.org', extensions: true }

interface Sent {
  readonly id: string
  readonly type: string
  readonly items: readonly string[]
}

/** A receiver whose status can be changed, and a catalog with a webhook for it. */
async function prepare(settings: Partial<WebhookSettings> = {}) {
  const sent: Sent[] = []
  const receiver = { status: 200, headers: {}, sent }
  const server = createServer((request, response) => {
    let body = ''
    request.on('data', (chunk) => {
      body += chunk
    })
    request.on('end', () => {
      const { type, data } = JSON.parse(body)
      const changes: { data: { item_id: string } }[] = data.changes ?? ('item_id' in data ? [{ data }] : [])
      const id = `${request.headers['webhook-id']}`
      sent.push({ id, type, items: changes.map((change) => change.data.item_id) })
      response.writeHead(receiver.status, receiver.headers).end()
    })
  })
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
  const { port } = server.address() as AddressInfo
  const directory = join(tempDirectory(), 'data')
  const catalog = await openSqliteCatalog({ directory, writer: 'thread' })
  onTestFinished(async () => {
    server.closeAllConnections()
    server.close()
    await catalog.close()
  })
  const bucketId = await newBucket(catalog, 'b')
  const id = newWebhookId()
  await catalog.addWebhook({
    url: `http://127.0.0.1:${port}/`,
    kinds: [],
    batch: 1,
    ...settings,
    id,
    bucketId,
    secret: newWebhookSecret(),
    createdAt: 0,
  })
  return {
    directory,
    catalog,
    bucketId,
    id,
    receiver,
    async add(count: number): Promise<readonly string[]> {
      const items = newItems(count)
      await catalog.addItems(bucketId, inBlobStore(items))
      return items.map((item) => item.id)
    },
    webhook: async () => (await catalog.listWebhooks()).find((one) => one.id === id),
    delivered: () => sent.flatMap(({ items }) => items),
  }
}

/** Starts a deliverer whose clock the test moves. It searches often, so that a step of the clock takes effect soon. */
function deliver(catalog: Catalog, { owner = 'one', scanInterval = 50 } = {}) {
  const clock = { ahead: 0 }
  const lines: string[] = []
  const log = pino({}, { write: (line: string) => void lines.push(line) })
  const now = () => Date.now() + clock.ahead
  const outcomes: boolean[] = []
  const deliverer = startDeliverer({
    catalog,
    poster: createPoster({ allowed: ['127.0.0.1'] }),
    urls,
    signLinks: signLinksOperation({ catalog, urls, now }),
    owner,
    now,
    random: () => 0.5,
    log,
    onDelivery: (isDelivered) => void outcomes.push(isDelivered),
    scanInterval,
  })
  let isClosed = false
  const close = async () => {
    if (!isClosed) await deliverer.close()
    isClosed = true
  }
  onTestFinished(close)
  return { clock, lines, close, outcomes }
}

test('WH6 a receiver that is down for an hour receives every change, in order, when it is back', async () => {
  const { catalog, receiver, add, webhook, delivered } = await prepare()
  const { clock, outcomes } = deliver(catalog)
  receiver.status = 500
  const added = [...(await add(3))]
  for (let failures = 1; clock.ahead < 60 * minute; failures += 1) {
    await until(`failure ${failures}`, async () => ((await webhook())?.failures ?? 0) >= failures)
    const { nextAttempt } = (await webhook()) ?? {}
    clock.ahead = (nextAttempt ?? 0) - Date.now()
  }
  added.push(...(await add(2)))
  expect(new Set(receiver.sent.map(({ id }) => id)).size).toBe(1)
  expect(new Set(delivered())).toEqual(new Set(added.slice(0, 1)))
  receiver.status = 200
  const before = delivered().length
  clock.ahead += 60 * minute
  await until('all arrive', () => delivered().length >= before + added.length)
  expect(delivered().slice(before)).toEqual(added)
  expect(await webhook()).toMatchObject({ state: 'on', failures: 0, failingSince: null })
  const successes = () => outcomes.filter((isDelivered) => isDelivered).length
  await until('the last response arrives', () => successes() >= added.length)
  expect(successes()).toBe(added.length)
})

test('WH6 after three days of attempts a webhook is switched off, and continues where it stopped', async () => {
  const { catalog, bucketId, id, receiver, add, webhook, delivered } = await prepare()
  const { clock, lines } = deliver(catalog)
  receiver.status = 503
  // So that few attempts take three days.
  receiver.headers = { 'retry-after': `${day / 1_000 - 60}` }
  const added = await add(2)
  for (let failures = 1; failures <= 4; failures += 1) {
    await until(`failure ${failures}`, async () => (await webhook())?.failures === failures)
    expect((await webhook())?.state).toBe('on')
    clock.ahead = ((await webhook())?.nextAttempt ?? 0) - Date.now()
  }
  await until('it is switched off', async () => (await webhook())?.state === 'failed')
  const reason = 'a webhook was switched off, because its deliveries have failed for three days'
  await until('the log has a line', () => lines.some((line) => line.includes(reason)))
  expect(lines.join('')).not.toContain('127.0.0.1')
  expect(await catalog.statistics()).toMatchObject({ stoppedWebhooks: 1, failingWebhooks: 0 })
  receiver.status = 200
  receiver.sent.length = 0
  await catalog.setWebhook(bucketId, id, { state: 'on' })
  await until('all arrive', () => delivered().length >= 2)
  expect(delivered()).toEqual(added)
})

test('WH6 a clock that is ahead or behind, and the sleep of a machine, delay no retry and switch no webhook off', async () => {
  const { catalog, receiver, add, webhook } = await prepare()
  const { clock } = deliver(catalog)
  const random = seededRandom()
  const units = [1_000, minute, 60 * minute, day, 30 * day, 365 * day]
  receiver.status = 500
  await add(1)
  const failures = async () => (await webhook())?.failures ?? 0
  await until('a failure', async () => (await failures()) === 1)
  for (let step = 0; step < 12; step += 1) {
    const before = await failures()
    const unit = units[random(units.length)] ?? 0
    const move = (random(2) === 0 ? 1 : -1) * unit * (1 + random(9))
    clock.ahead += move
    // Behind the attempt, it is repeated at once. Otherwise it comes at its time by the new clock.
    const { nextAttempt } = (await webhook()) ?? {}
    const wait = (nextAttempt ?? 0) - (Date.now() + clock.ahead)
    if (move > 0 || move >= -2 * minute) clock.ahead += Math.max(0, wait)
    await until(`an attempt after ${move} ms`, async () => (await failures()) > before)
    const now = (await webhook()) ?? null
    expect(now?.state).toBe('on')
    expect((now?.nextAttempt ?? 0) - (Date.now() + clock.ahead)).toBeLessThan(day)
  }
  receiver.status = 200
  clock.ahead += day
  await until('it is delivered', async () => (await failures()) === 0)
})

/** How a hostile receiver responds. */
const hostile: readonly ((response: ServerResponse) => void)[] = [
  // Never.
  () => undefined,
  // With a status, and a body that never ends.
  (response) => void response.writeHead(200).write('.'),
  // With a body of which another byte comes now and then.
  (response) => {
    response.writeHead(200)
    const timer = setInterval(() => response.write('.'), 100)
    response.on('close', () => clearInterval(timer))
  },
  // As fast as it is read.
  (response) => {
    response.writeHead(200)
    const more = () => {
      while (!response.destroyed && response.write(Buffer.alloc(65_536)));
    }
    response.on('drain', more)
    more()
  },
  // Late.
  (response) => {
    const timer = setTimeout(() => response.writeHead(200).end(), 12_000)
    response.on('close', () => clearTimeout(timer))
  },
]

test('WH6, WH12 receivers of many buckets that never end, end late or send without end delay no others', async () => {
  const { catalog, receiver, add, webhook, delivered } = await prepare()
  let requests = 0
  const server = createServer((request, response) => {
    requests += 1
    response.on('error', () => undefined)
    request.resume()
    const kind = Number(request.url?.slice(1))
    request.on('end', () => hostile[kind % hostile.length]?.(response))
  })
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  const { port } = server.address() as AddressInfo
  for (let bucket = 0; bucket < 20; bucket += 1) {
    const bucketId = await newBucket(catalog, `hostile-${bucket}`)
    for (let number = 0; number < 10; number += 1)
      await catalog.addWebhook({
        url: `http://127.0.0.1:${port}/${bucket + number}`,
        ...{ kinds: [], batch: 1, id: newWebhookId(), bucketId, secret: newWebhookSecret(), createdAt: 0 },
      })
    // More than they receive during the test.
    await catalog.addItems(bucketId, inBlobStore(newItems(300)))
  }
  const { clock } = deliver(catalog)
  await until('the hostile receivers are busy', () => requests >= 80)
  receiver.status = 500
  const added = await add(3)
  for (let failures = 1; failures <= 3; failures += 1) {
    await until(`failure ${failures}`, async () => (await webhook())?.failures === failures)
    clock.ahead = ((await webhook())?.nextAttempt ?? 0) - Date.now()
  }
  receiver.status = 200
  receiver.sent.length = 0
  await until('all arrive', () => delivered().length >= added.length)
  expect(delivered()).toEqual(added)
})

test('WH12 the webhooks of a bucket that are served later do not wait for the next periodic search', async () => {
  const { catalog, bucketId, receiver, add, delivered } = await prepare()
  const { url } = (await catalog.listWebhooks())[0] ?? { url: '' }
  const others = Array.from({ length: 9 }, () => newWebhookId())
  for (const id of others)
    await catalog.addWebhook({
      ...{ url, kinds: [], batch: 1, id, bucketId, secret: newWebhookSecret(), createdAt: 0 },
    })
  // Periodic searches wait here from the second one on.
  const released = Promise.withResolvers<BucketId[]>()
  let searches = 0
  deliver({
    ...catalog,
    listWebhookBuckets: () => (++searches === 1 ? catalog.listWebhookBuckets() : released.promise),
  })
  onTestFinished(() => released.resolve([]))
  await until('the second search waits', () => searches === 2)
  const [added] = await add(1)
  await until('all webhooks have delivered', () => receiver.sent.length >= 10)
  expect(delivered()).toEqual(Array.from({ length: 10 }, () => added))
})

test('WH8 a webhook whose changes have left the feed receives changes.lost, and then those that follow', async () => {
  const { catalog, bucketId, id, receiver, add, delivered } = await prepare()
  await catalog.setWebhook(bucketId, id, { state: 'off' })
  await add(2)
  await catalog.removeChanges(Date.now() + minute, 100)
  await catalog.setWebhook(bucketId, id, { state: 'on' })
  deliver(catalog)
  await until('the message arrives', () => receiver.sent.length === 1)
  const later = await add(2)
  await until('the changes arrive', () => receiver.sent.length >= 3)
  expect(receiver.sent.map(({ type }) => type)).toEqual(['changes.lost', 'item.added', 'item.added'])
  expect(delivered()).toEqual(later)
})

/** Copies a catalog as a backup and its restore do, and opens the copy. */
async function restoreCopy(directory: string): Promise<Catalog> {
  const into = tempDirectory()
  const inspection = await openSqliteInspection(directory)
  await inspection.snapshot(into, null)
  await inspection.close()
  const copied = await openSqliteInspection(into)
  await copied.renew()
  await copied.close()
  const catalog = await openSqliteCatalog({ directory: into, writer: 'thread' })
  onTestFinished(() => catalog.close())
  return catalog
}

test('WH5, WH8 after a restore, changes with the numbers of earlier ones have other ids', async () => {
  const { directory, catalog, bucketId, receiver } = await prepare()
  const restored = [await restoreCopy(directory), await restoreCopy(directory)]
  const added = () => receiver.sent.filter(({ type }) => type === 'item.added').length
  for (const [index, one] of [catalog, ...restored].entries()) {
    const { close } = deliver(one)
    await until('the restored webhook has a place', () => receiver.sent.length === 2 * index)
    await one.addItems(bucketId, inBlobStore(newItems(1)))
    await until('the change arrives', () => added() === index + 1)
    await close()
  }
  const types = receiver.sent.map(({ type }) => type)
  expect(types).toEqual(['item.added', 'changes.lost', 'item.added', 'changes.lost', 'item.added'])
  expect(new Set(receiver.sent.map(({ id }) => id)).size).toBe(5)
})

test('WH4, WH5 changes of other kinds are passed by', async () => {
  const { catalog, bucketId, receiver, add, delivered, id } = await prepare({ kinds: ['removed'], batch: 3 })
  const added = await add(250)
  const removed = added.filter((_, index) => index % 50 === 0)
  for (const one of removed) await catalog.removeItems(bucketId, [one as never])
  deliver(catalog)
  await until('all arrive', () => delivered().length >= 5)
  expect(delivered()).toEqual(removed)
  expect(receiver.sent.map(({ items }) => items.length)).toEqual([3, 2])
  await until('both are stored', async () => (await catalog.listWebhookDeliveries(id)).length === 2)
  expect(await catalog.dueWebhooks('one', Date.now() + minute, 9)).toEqual([])
})

test('WH4 a webhook for kinds that only a newer version knows delivers nothing', async () => {
  const { catalog, receiver, add, webhook, id } = await prepare({ kinds: ['archived', 'moved'] })
  await add(3)
  const before = (await catalog.findWebhook(id))?.position
  const { clock } = deliver(catalog)
  clock.ahead = minute
  await until('the changes are passed by', async () => (await catalog.findWebhook(id))?.position !== before)
  expect(receiver.sent).toEqual([])
  // A copy of the data for that version keeps them.
  expect((await webhook())?.kinds).toEqual(['archived', 'moved'])
})

test('a change of another kind is not read before it is passed by', async () => {
  const { catalog, add, webhook } = await prepare({ kinds: ['removed'] })
  const calls = { searches: 0, reads: 0 }
  await add(1)
  const { clock } = deliver({
    ...catalog,
    dueWebhooks(...parameters) {
      calls.searches += 1
      return catalog.dueWebhooks(...parameters)
    },
    readChanges(...parameters) {
      calls.reads += 1
      return catalog.readChanges(...parameters)
    },
  })
  // However long the searches take, the change has not waited.
  clock.ahead = -60 * minute
  await until('the deliverer has searched', () => calls.searches >= 3)
  expect(calls.reads).toBe(0)
  clock.ahead = minute
  const { id } = (await webhook()) ?? {}
  const position = async () => id && (await catalog.findWebhook(id))?.position
  const before = await position()
  await until('the position is stored', async () => (await position()) !== before)
})

test('WH7 of two deliverers one delivers, and the other one goes on when it stops', async () => {
  const { catalog, receiver, add, delivered } = await prepare()
  const one = deliver(catalog, { owner: 'one' })
  const two = deliver(catalog, { owner: 'two' })
  const added = [...(await add(100))]
  await until('some arrive', () => delivered().length >= 10)
  const first = one.outcomes.length > 0 ? one : two
  await first.close()
  const other = first === one ? two : one
  added.push(...(await add(10)))
  await until('all arrive', () => delivered().length >= added.length)
  expect(delivered()).toEqual(added)
  const outcomes = () => first.outcomes.length + other.outcomes.length
  await until('the last response arrives', () => outcomes() >= added.length)
  expect(outcomes()).toBe(added.length)
  expect(new Set(receiver.sent.map(({ id }) => id)).size).toBe(added.length)
})

test('WH7 a lease of an owner that has gone ends by its time', async () => {
  const { catalog, id, add, delivered } = await prepare()
  const added = await add(1)
  const lifetime = 1_500
  const began = Date.now()
  await catalog.claimWebhook(id, 'gone', lifetime)
  const { clock } = deliver(catalog, { owner: 'one' })
  // The clock of a process does not end the lease of another one.
  clock.ahead = 40_000
  await until('it arrives', () => delivered().length === 1)
  expect(Date.now() - began).toBeGreaterThanOrEqual(lifetime)
  expect(delivered()).toEqual(added)
})
