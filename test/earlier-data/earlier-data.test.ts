import { execFile } from 'node:child_process'
import { chmod, cp, mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { describe, expect, test } from 'vitest'
import { temporaryDirectory } from '../harness/directory.ts'
import { onServer, startPostgres } from '../harness/postgres.ts'
import { expectProblem } from '../harness/problem.ts'
import { whileStopped } from '../harness/processes.ts'
import { seededRandom } from '../harness/random.ts'
import { startReceiver } from '../harness/receiver.ts'
import { startServer, type TestServer } from '../harness/server.ts'
import { makeToken } from '../harness/token.ts'
import { until } from '../harness/until.ts'
import { upload } from '../harness/upload.ts'
import { readChanges, readCreatedWebhook, readItems } from '../harness/wire.ts'
import {
  type Access,
  cacheResponses,
  type Follower,
  followFeed,
  listState,
  receiveWebhook,
  request,
  walkList,
} from './followers.ts'
import {
  asynchronousReplica,
  catalogSnapshot,
  copiedDirectory,
  databaseSnapshot,
  diskSnapshot,
  dumpedDatabase,
  type Place,
} from './places.ts'

const run = promisify(execFile)

/** Makes a random change of the bucket. */
async function change(access: Access, random: (limit: number) => number): Promise<void> {
  const ids = [...(await listState(access)).keys()]
  const id = ids[random(Math.max(ids.length, 1))]
  const kind = random(10)
  if (id === undefined || kind < 5) {
    await upload(access.server, `bytes ${random(2 ** 31)}`, { authorization: access.authorization })
    return
  }
  const response = await request(
    access,
    `/api/media/${id}`,
    kind < 8
      ? {
          method: 'PATCH',
          body: JSON.stringify({ caption: `caption ${random(2 ** 31)}` }),
          headers: { 'content-type': 'application/json' },
        }
      : { method: 'DELETE' },
  )
  expect([200, 204]).toContain(response.status)
  await response.arrayBuffer()
}

/**
 * A random history of changes, with programs that follow them, whose data are set back. Other changes follow, whose numbers would be those of the lost
 * ones. In the end, what each follower knows must be the bucket.
 */
async function goBack(
  place: Place,
  { rounds = 1, isNoticed = true }: { readonly rounds?: number; readonly isNoticed?: boolean } = {},
): Promise<void> {
  const random = seededRandom()
  let server = await place.start()
  await using stack = new AsyncDisposableStack()
  stack.defer(() => server.kill())
  const scopes = ['media:read', 'media:write', 'media:delete', 'webhooks:manage']
  const { stdout: token } = await server.command(
    ...['token', 'create', '--bucket', 'followed'],
    ...scopes.flatMap((scope) => ['--scope', scope]),
  )
  const access: Access = { server, authorization: `Bearer ${token.trim()}` }
  const receivers = [await receiveWebhook(access, 1), await receiveWebhook(access, 5)]
  for (const receiver of receivers) stack.defer(receiver.close)
  // Where the service itself notices it, receivers learn of it also if nobody reads the feed.
  const readers = [
    followFeed(access, 'request', 3),
    followFeed(access, 'request', 500),
    followFeed(access, 'stream', 0),
  ]
  // One that is alone learns nothing from what the others know.
  const alone = random(6)
  const feeds = isNoticed && random(2) === 0 ? [] : readers.filter((_, index) => alone > 2 || index === alone)
  const caches = [cacheResponses(access), cacheResponses(access)]
  const followers: Follower[] = [...feeds, ...caches, walkList(access), walkList(access), ...receivers]

  async function work(steps: number): Promise<void> {
    for (let step = 0; step < steps; step += 1) {
      await change(access, random)
      if (random(2) === 0) await followers[random(followers.length)]?.step()
    }
  }

  /** Receivers wait for the next search of the service for deliveries, both for the same one. */
  async function checkAll(): Promise<void> {
    for (const follower of followers) if (!receivers.some((one) => one === follower)) await follower.check()
    await Promise.all(receivers.map((receiver) => receiver.check()))
  }

  await work(6 + random(10))
  for (let round = 0; round < rounds; round += 1) {
    await place.save(server)
    for (const follower of followers) if (random(2) === 0) await follower.step()
    await work(1 + random(12))
    // Without a program that knows the last change, nothing shows that a whole disk has gone back.
    for (const follower of [...feeds, ...caches]) await follower.step()
    server = await place.goBack(server)
    access.server = server
    await work(random(20))
    await checkAll()
    if (feeds.length > 0)
      await until('the log has a warning', () =>
        server.log().some(({ msg }) => msg.startsWith('the data have gone back')),
      )
    await work(random(3))
    await checkAll()
  }
}

/** A service, and a start of another one with a copy of its data. */
interface Copied {
  readonly original: TestServer
  readonly start: () => Promise<TestServer>
}

async function copiedElsewhere(stack: AsyncDisposableStack): Promise<Copied> {
  const directory = stack.use(await temporaryDirectory())
  const [data, copy] = [join(directory.path, 'data'), join(directory.path, 'copy')]
  const original = stack.use(await startServer({}, data))
  return {
    original,
    async start() {
      await whileStopped(original, () => cp(data, copy, { recursive: true }))
      return stack.use(await startServer({}, copy))
    },
  }
}

async function restoredElsewhere(stack: AsyncDisposableStack): Promise<Copied> {
  const directory = stack.use(await temporaryDirectory())
  const postgres = await startPostgres(await databaseDirectory(directory.path))
  stack.defer(() => postgres.control('-m', 'immediate', 'stop'))
  const [data, copy, dump] = ['data', 'copy', 'dump'].map((name) => join(directory.path, name)) as [
    string,
    string,
    string,
  ]
  const [from, to] = [postgres.url('postgres'), postgres.url('staging')]
  const original = stack.use(await startServer({ MEDIABUCKET_DATABASE_URL: from }, data))
  return {
    original,
    async start() {
      await run('pg_dump', ['-Fc', '-f', dump, from])
      await onServer(from, 'CREATE DATABASE staging')
      await run('pg_restore', ['--single-transaction', '-d', to, dump])
      await cp(data, copy, { recursive: true })
      return stack.use(await startServer({ MEDIABUCKET_DATABASE_URL: to }, copy))
    },
  }
}

/** A new directory for a database server, whose user can reach it. */
async function databaseDirectory(parent: string): Promise<string> {
  const path = join(parent, 'postgres')
  await mkdir(path)
  await chmod(parent, 0o755)
  return path
}

const rules =
  'FE5, K6, L16, WH5, WH8, F13 after data have gone back, each follower, cache and receiver has the state of the bucket'

describe(rules, () => {
  test.each([
    ['a copied directory', copiedDirectory, true],
    ['a snapshot of the disk', diskSnapshot, false],
    ['a snapshot of the disk with the catalog', catalogSnapshot, true],
  ])('SQLite: %s', async (_name, placeAt, isNoticed) => {
    await using directory = await temporaryDirectory()
    await goBack(placeAt(directory.path), { rounds: 3, isNoticed })
  })

  test.each([
    ['stopped', 'pg_restore', dumpedDatabase],
    ['running', 'pg_restore', dumpedDatabase],
    ['stopped', 'a snapshot of its disk', databaseSnapshot],
    ['running', 'a snapshot of its disk', databaseSnapshot],
  ] as const)('PostgreSQL, with the service %s: %s', async (serviceState, _name, placeAt) => {
    await using directory = await temporaryDirectory()
    const own = await databaseDirectory(directory.path)
    const postgres = { ...(await startPostgres(own)), data: join(own, 'data') }
    await using stack = new AsyncDisposableStack()
    stack.defer(() => postgres.control('-m', 'immediate', 'stop'))
    await goBack(placeAt(directory.path, postgres, serviceState))
  })

  test('PostgreSQL: a failover to a replica that lacks the last commits', async () => {
    await using directory = await temporaryDirectory()
    const primary = await startPostgres(await databaseDirectory(directory.path))
    await goBack(await asynchronousReplica(directory.path, primary))
  })
})

test.each([
  ['SQLite: a copied directory', copiedElsewhere],
  ['PostgreSQL: pg_restore into another database', restoredElsewhere],
] as const)(
  'F13, FE5, K6 cursors of a copy of the data are refused, and renew nothing. %s',
  async (_name, copy) => {
    await using stack = new AsyncDisposableStack()
    const { original, start } = await copy(stack)
    const authorization = `Bearer ${original.token}`
    const from: Access = { server: original, authorization }
    for (const text of ['one', 'two', 'three']) await upload(original, text, { authorization })
    const cursorsOf = async (access: Access) => ({
      feed: (await readChanges(await request(access, '/api/changes?since=now'))).next_cursor,
      list: (await readItems(await request(access, '/api/items?limit=2'))).next_cursor,
    })
    const own = await cursorsOf(from)

    const staging: Access = { server: await start(), authorization }
    for (const text of ['four', 'five']) await upload(staging.server, text, { authorization })
    const foreign = await cursorsOf(staging)
    await expectProblem(await request(from, `/api/changes?after=${foreign.feed}`), 410, 'cursor-expired')
    await expectProblem(
      await request(from, `/api/items?limit=2&after=${foreign.list}`),
      400,
      'cursor-malformed',
    )
    expect(original.log().filter(({ msg }) => msg.startsWith('the data have gone back'))).toEqual([])
    expect((await readChanges(await request(from, `/api/changes?after=${own.feed}`))).data).toEqual([])
    expect((await readItems(await request(from, `/api/items?limit=2&after=${own.list}`))).data).toHaveLength(
      1,
    )
    // The copy has noticed that it is one.
    await expectProblem(await request(staging, `/api/changes?after=${own.feed}`), 410, 'cursor-expired')
  },
)

test('F13, FE5, K6, L16, WH8 restore --renew makes every reader start again while the service runs', async () => {
  await using server = await startServer({ MEDIABUCKET_WEBHOOK_ALLOW: '127.0.0.1' })
  const scopes = ['media:read', 'media:write', 'webhooks:manage'].flatMap((scope) => ['--scope', scope])
  const { authorization } = await makeToken(server, '--bucket', 'default', ...scopes)
  const access: Access = { server, authorization }
  for (const text of ['one', 'two', 'three']) await upload(server, text)
  await using receiver = await startReceiver()
  const created = await request(access, '/api/webhooks', {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ url: receiver.url }),
  })
  receiver.secrets.add(readCreatedWebhook(await created.json()).secret)
  const lost = () => receiver.received.filter(({ type }) => type === 'changes.lost')
  for (let round = 1; round <= 2; round += 1) {
    const { next_cursor: feed } = await readChanges(await request(access, '/api/changes?since=now'))
    const { next_cursor: list } = await readItems(await request(access, '/api/items?limit=2'))
    const paths = ['/api/media', '/api/items?limit=2']
    const tags = await Promise.all(
      paths.map(async (path) => (await request(access, path)).headers.get('etag') ?? ''),
    )
    const { stdout } = await server.command('restore', '--renew')
    expect(stdout).toContain('Renewed.')
    await expectProblem(await request(access, `/api/changes?after=${feed}`), 410, 'cursor-expired')
    await expectProblem(await request(access, `/api/items?limit=2&after=${list}`), 400, 'cursor-malformed')
    for (const [index, path] of paths.entries()) {
      const response = await request(access, path, { headers: { 'if-none-match': tags[index] ?? '' } })
      expect(response.status).toBe(200)
      await response.arrayBuffer()
    }
    await until('changes.lost', () => lost().length === round)
  }
  expect(new Set(lost().map(({ id }) => id)).size).toBe(2)
  await upload(server, 'four')
  await until('the next change', () => receiver.received.at(-1)?.type === 'item.added')
})
