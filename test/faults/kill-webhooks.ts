import { setTimeout } from 'node:timers/promises'
import { service } from '../../packages/server/src/core/token-rules.ts'
import { readConfig } from '../../packages/server/src/service/config.ts'
import { openCatalog } from '../../packages/server/src/storage/engines.ts'
import { databaseSettings, usePostgres } from '../harness/database.ts'
import { onServer } from '../harness/postgres.ts'
import { type Receiver, respondWith, startReceiver } from '../harness/receiver.ts'
import { makeToken } from '../harness/token.ts'
import { until } from '../harness/until.ts'
import { readCreatedWebhook } from '../harness/wire.ts'
import { createClients } from './clients.ts'
import { type Fault, onEngines, verdictOf } from './fault.ts'
import { createLedger, type Ledger } from './ledger.ts'
import { type Instance, openInstances } from './server-instances.ts'

/** Maximum milliseconds of work before the kill. */
const longest = 600

/** Uploads of a round, at most, so that a fast machine has no more to deliver than a slow one. */
const uploads = 100

/** Milliseconds in which a further change must arrive: a lease, and then a machine on which all takes long. */
const longestPause = 120_000

const settings = { MEDIABUCKET_WEBHOOK_ALLOW: '127.0.0.1' }

/**
 * Kills the service while clients upload and delete and webhooks deliver, with receivers that refuse, are slow and end. Afterwards what has
 * arrived must be the feed: every change, in its order.
 */
async function run(rounds: number, onRound: () => void): Promise<ReturnType<typeof verdictOf>> {
  await using instances = await openInstances()
  const ledger = createLedger()
  const clients = createClients(ledger, 10_000)
  let instance = await instances.start(settings)
  const { data } = instance.server
  // One change at a time, and lists.
  const hooks = [await createHook(instance, 1), await createHook(instance, 20)]
  // On a busy machine, the service can be killed in each round before it acknowledges an upload.
  await clients.raw(instance)
  for (let round = 0; round < rounds; round += 1) {
    const enough = ledger.tally.acknowledged + uploads
    const working = clients.workUntil(() => ledger.tally.acknowledged >= enough, instance, 4)
    for (const hook of hooks) await disturb(hook, ledger)
    await setTimeout(ledger.random(longest))
    await instance.server.kill()
    await working
    await releaseLeases(data)
    instance = await instances.start(settings)
    await ledger.check(instance)
    ledger.tally.rounds += 1
    onRound()
  }
  await clients.resumeAll(instance)
  const feed = await readFeed(data)
  for (const hook of hooks) {
    hook.receiver.respond = respondWith(204)
    await restart(hook.receiver)
    await untilAllArrived(hook, instance, feed.length)
    checkReceived(hook.receiver, feed, ledger)
  }
  await ledger.check(instance)
  await instance.server.stop()
  for (const { receiver } of hooks) await receiver.close()
  return verdictOf(ledger)
}

type Hook = Awaited<ReturnType<typeof createHook>>

async function createHook({ server }: Instance, batch: number) {
  const receiver = await startReceiver()
  const scope = ['--scope', 'webhooks:manage']
  const { authorization } = await makeToken(server, '--bucket', 'default', ...scope)
  const response = await server.request('/api/webhooks', {
    method: 'POST',
    headers: { authorization, 'content-type': 'application/json' },
    body: JSON.stringify({ url: receiver.url, batch }),
  })
  const { id, secret } = readCreatedWebhook(await response.json())
  receiver.secrets.add(secret)
  return { receiver, id, authorization }
}

/** On PostgreSQL a process that was killed keeps its leases for up to 30 s, in which the next one would deliver nothing. */
async function releaseLeases(data: string): Promise<void> {
  const { MEDIABUCKET_DATABASE_URL: url } = await databaseSettings(data)
  if (url !== undefined) await onServer(url, 'UPDATE webhooks SET owner = NULL, owned_until = NULL')
}

/** Waits as long as further changes arrive. */
async function untilAllArrived(
  { receiver, id, authorization }: Hook,
  { server }: Instance,
  expected: number,
): Promise<void> {
  const headers = { authorization }
  const arrived = () => arrivedChanges(receiver).size
  const moreThan = (before: number) => async () => {
    if (arrived() > before) return true
    // A success ends the wait after a failure.
    await server.request(`/api/webhooks/${id}/test`, { method: 'POST', headers })
    await setTimeout(1_000)
    return false
  }
  while (arrived() < expected) {
    const before = arrived()
    try {
      await until('a further change arrives', moreThan(before), longestPause)
    } catch (cause) {
      const webhook = await (await server.request(`/api/webhooks/${id}`, { headers })).text()
      throw new Error(`${before} of ${expected} changes have arrived at ${webhook}`, { cause })
    }
  }
}

/** The receiver gets well, ill, slow, or is killed in the middle of a request. */
async function disturb({ receiver }: Hook, { random }: Ledger): Promise<void> {
  const illness = random(6)
  if (illness === 0) receiver.respond = respondWith(500)
  else if (illness === 1) receiver.respond = (_received, response) => void response.destroy()
  else if (illness === 2)
    receiver.respond = async (_received, response) => {
      await setTimeout(random(200))
      response.end()
    }
  else if (illness === 3) await restart(receiver)
  else receiver.respond = respondWith(204)
}

async function restart(receiver: Receiver): Promise<void> {
  await receiver.close()
  await receiver.listen()
}

async function readFeed(
  data: string,
): Promise<readonly { readonly number: number; readonly type: string }[]> {
  const { config } = readConfig({ ...(await databaseSettings(data)), MEDIABUCKET_DATA: data })
  const catalog = await openCatalog(config, { writer: 'direct', actor: service })
  try {
    const bucket = await catalog.findBucketNamed('default')
    if (bucket === null) throw new Error('there is no bucket')
    const rows = await catalog.readChanges(bucket.id, 'start', 1_000_000)
    return rows?.changes.map(({ number, kind }) => ({ number, type: `item.${kind}` })) ?? []
  } finally {
    await catalog.close()
  }
}

/** The types of the changes that have arrived, by their numbers, in the order in which they arrived first. */
function arrivedChanges({ received }: Receiver): ReadonlyMap<number, string> {
  const first = new Map<number, string>()
  for (const { changes } of received)
    for (const { type, data } of changes) if (!first.has(data.number)) first.set(data.number, type)
  return first
}

/** Without repetitions, what has arrived is the feed. A repetition begins after the last change whose delivery has succeeded. */
function checkReceived(
  receiver: Receiver,
  feed: readonly { readonly number: number; readonly type: string }[],
  ledger: Ledger,
): void {
  const { refused } = receiver
  const arrived = [...arrivedChanges(receiver)].map(([number, type]) => ({ number, type }))
  if (JSON.stringify(arrived) !== JSON.stringify(feed))
    ledger.fault('lost', `${arrived.length} changes arrived of ${feed.length}, or in another order`)
  if (refused.length > 0) ledger.fault('lost', `${refused.length} messages had no valid signature`)
}

export const killDuringDeliveries: Fault = {
  title: 'kill -9 during deliveries to webhooks',
  run,
}

export const killDuringDeliveriesOnPostgres = onEngines(killDuringDeliveries, 'PostgreSQL', usePostgres)
