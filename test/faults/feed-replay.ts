import { setTimeout } from 'node:timers/promises'
import { isDeepStrictEqual } from 'node:util'
import { type Change, createClient, type Media } from '../../packages/client/src/index.ts'
import {
  type ItemChangeKind,
  isItemChangeKind,
} from '../../packages/server/src/storage/catalog/items/item-changes.ts'
import { temporaryDirectory } from '../harness/directory.ts'
import { startPostgres } from '../harness/postgres.ts'
import { until } from '../harness/until.ts'
import { readChanges } from '../harness/wire.ts'
import { createClients } from './clients.ts'
import { type Fault, verdictOf } from './fault.ts'
import { createLedger, type Ledger } from './ledger.ts'
import { type Instance, openInstances } from './server-instances.ts'

const atOnce = 16
/** Clients that edit items. */
const editors = 2
/** Maximum milliseconds of work before the kill. */
const longest = 1_000
/** Milliseconds before a request is repeated that failed because of the database. */
const pause = 50

/** Reads the feed across all servers, and continues after the last change that it has received. */
function createFollower() {
  const seen: Change[] = []
  let cursor: string | null = null
  let isDone = false

  /** Until the server is gone, or all is read. */
  async function read({ server, authorization }: Instance): Promise<void> {
    for (;;) {
      const url = `/api/changes?wait=1&limit=7${cursor === null ? '' : `&after=${cursor}`}`
      const response = await server.request(url, { headers: { authorization } })
      if (response.status >= 500) {
        await response.arrayBuffer()
        await setTimeout(pause)
        continue
      }
      if (response.status !== 200) throw new Error(`the feed responds ${response.status}`)
      const list = await readChanges(response)
      seen.push(...list.data)
      cursor = list.next_cursor
      if (isDone && list.data.length === 0) return
    }
  }

  return {
    seen,
    /** A kill ends the connection. The response was not received, so the next server sends these changes. */
    untilGone: (instance: Instance) =>
      read(instance).catch((error: unknown) => {
        if (!(error instanceof TypeError)) throw error
      }),
    async toEnd(instance: Instance): Promise<void> {
      isDone = true
      await read(instance)
    },
    /** Until `end` is called and all is read, across failures of the database. */
    follow(instance: Instance) {
      const reading = read(instance)
      reading.catch(() => undefined)
      return {
        async end(): Promise<void> {
          isDone = true
          await reading
        },
      }
    },
  }
}

/** Edits items until the server is gone or `isDone`. An edit that received no response may have been made. */
async function edit(
  { server, authorization }: Instance,
  ledger: Ledger,
  isDone = () => false,
): Promise<void> {
  const headers = { authorization, 'content-type': 'application/merge-patch+json' }
  for (let number = 0; !isDone(); number += 1) {
    const { stored } = ledger.changes()
    const id = stored[ledger.random(stored.length)]
    const body = JSON.stringify({ caption: `edit ${number}` })
    const response = await server
      .request(`/api/media/${id}`, { method: 'PATCH', body, headers })
      .catch(() => null)
    if (response === null) return
    await response.arrayBuffer()
    if (response.status >= 500) await setTimeout(pause)
  }
}

/** After which states of an item a change of it is possible here, where there is no trash and nothing expires. */
const allowed: Readonly<Record<ItemChangeKind, readonly string[]>> = {
  added: ['none'],
  edited: ['listed'],
  previewed: ['listed'],
  removed: ['listed'],
  trashed: [],
  restored: [],
  expired: [],
}

/** Without the URLs, which have the port of the server that sent them. */
const stateOf = (item: Media | null | undefined) => item && { ...item, url: null, variants: null }

/** The feed that was followed must be the whole feed, in a possible order, and give the items of the bucket. */
async function compare(seen: readonly Change[], instance: Instance, ledger: Ledger): Promise<void> {
  const client = createClient({ url: instance.server.url, token: instance.token })
  const states = new Map<string, 'listed' | 'gone'>()
  const last = new Map<string, Media | null>()
  for (const { type, item_id, item } of seen) {
    const state = states.get(item_id) ?? 'none'
    if (!isItemChangeKind(type) || !allowed[type].includes(state))
      ledger.fault('halfVisible', `${item_id} is ${type} after ${state}`)
    states.set(item_id, type === 'removed' ? 'gone' : 'listed')
    last.set(item_id, item)
  }

  const whole: Change[] = []
  for (let after = ''; ; ) {
    const query = `limit=500${after === '' ? '' : `&after=${after}`}`
    const { authorization } = instance
    const response = await instance.server.request(`/api/changes?${query}`, { headers: { authorization } })
    const list = await readChanges(response)
    whole.push(...list.data)
    after = list.next_cursor
    if (!list.has_more) break
  }
  const keys = (changes: readonly Change[]) =>
    changes.map(({ type, item_id, changed_at }) => [type, item_id, changed_at])
  if (!isDeepStrictEqual(keys(seen), keys(whole)))
    ledger.fault(
      seen.length > whole.length ? 'halfVisible' : 'lost',
      `${seen.length} changes were followed, and the feed has ${whole.length}`,
    )

  const items = new Map<string, Media>()
  for await (const item of client.items({ batchSize: 500 })) items.set(item.id, item)
  const replayed = [...states].filter(([, state]) => state === 'listed').map(([id]) => id)
  for (const id of replayed)
    if (!items.has(id)) ledger.fault('returned', `${id} is in the feed and is not listed`)
  for (const [id, item] of items)
    if (!isDeepStrictEqual(stateOf(last.get(id)), stateOf(item)))
      ledger.fault('lost', `the last change of ${id} has another state`)
}

export const feedDuringKills: Fault = {
  title: 'a reader of the feed, across kills during uploads, edits and deletes',
  async run(rounds, onRound) {
    await using instances = await openInstances()
    const ledger = createLedger()
    const clients = createClients(ledger, 20_000)
    const follower = createFollower()
    let instance = await instances.start()
    await clients.raw(instance)
    for (let round = 0; round < rounds; round += 1) {
      const current = instance
      const working = Promise.all([
        clients.workUntilGone(current, atOnce),
        follower.untilGone(current),
        ...Array.from({ length: editors }, () => edit(current, ledger)),
      ])
      await setTimeout(ledger.random(longest))
      await current.server.kill()
      await working
      instance = await instances.start()
      ledger.tally.rounds += 1
      onRound()
    }
    await clients.resumeAll(instance)
    await follower.toEnd(instance)
    await ledger.check(instance)
    await compare(follower.seen, instance, ledger)
    return verdictOf(ledger)
  },
}

export const feedDuringDatabaseKills: Fault = {
  title: 'a reader of the feed, across kills of PostgreSQL',
  async run(rounds, onRound) {
    await using directory = await temporaryDirectory()
    const database = await startPostgres(directory.path)
    await using stack = new AsyncDisposableStack()
    stack.defer(() => database.control('-m', 'immediate', 'stop'))
    const instances = stack.use(await openInstances())
    const ledger = createLedger()
    const clients = createClients(ledger, 20_000)
    const follower = createFollower()
    const instance = await instances.start({ MEDIABUCKET_DATABASE_URL: database.url('postgres') })
    const isReady = async () => (await fetch(`${instance.server.url}/readyz`)).status === 200
    await clients.raw(instance)
    const following = follower.follow(instance)
    for (let round = 0; round < rounds; round += 1) {
      let isDone = false
      const working = Promise.all([
        clients.workUntil(() => isDone, instance, atOnce),
        ...Array.from({ length: editors }, () => edit(instance, ledger, () => isDone)),
      ])
      await setTimeout(ledger.random(longest))
      await database.kill()
      await database.control('start')
      await until('readiness', isReady)
      await setTimeout(ledger.random(longest))
      isDone = true
      await working
      await ledger.check(instance, 'new')
      ledger.tally.rounds += 1
      onRound()
    }
    await clients.resumeAll(instance)
    await following.end()
    await ledger.check(instance)
    await compare(follower.seen, instance, ledger)
    await instance.server.stop()
    return verdictOf(ledger)
  },
}
