import { expect, onTestFinished, test } from 'vitest'
import {
  type Change,
  type ChangesOptions,
  type Client,
  createClient,
  ProblemError,
} from '../../packages/client/src/index.ts'
import { startServer } from '../harness/server.ts'
import { sharedServer } from '../harness/shared-server.ts'
import { until } from '../harness/until.ts'
import { newBucket } from './buckets.ts'

/** Follows in the background until the test ends. */
function follow(client: Client, options: ChangesOptions = {}) {
  const controller = new AbortController()
  const seen: Change[] = []
  const following = (async () => {
    for await (const change of client.changes({ ...options, signal: controller.signal })) seen.push(change)
  })()
  const ended = following.catch((error: unknown) => error)
  onTestFinished(() => controller.abort())
  return { seen, ended, stop: () => controller.abort(new Error('enough')) }
}

const brief = ({ type, item_id }: Change) => `${type} ${item_id}`

test('FE2, FE6 changes are iterated as they happen, and the iteration continues after a cursor', async () => {
  const client = await newBucket(await sharedServer(), 'followed')
  const start = await client.latestCursor()
  const first = await client.upload(new Uint8Array(1))
  const { seen, ended, stop } = follow(client, { after: start })
  await until('the first change', () => seen.length === 1)
  const second = await client.upload(new Uint8Array(2))
  await client.update(second.id, { caption: 'x' })
  await client.delete(first.id)
  await until('all changes', () => seen.length === 4)
  expect(seen.map(brief)).toEqual([
    `added ${first.id}`,
    `added ${second.id}`,
    `edited ${second.id}`,
    `removed ${first.id}`,
  ])
  expect(seen[2]?.item).toEqual(await client.describe(second.id))
  expect(seen[3]?.item).toBeNull()
  stop()
  expect(await ended).toMatchObject({ message: 'enough' })

  const rest: Change[] = []
  for await (const change of client.changes({ after: seen[1]?.cursor, batchSize: 1 })) {
    rest.push(change)
    if (rest.length === 2) break
  }
  const withoutCursor = ({ cursor: _, ...change }: Change) => change
  expect(rest.map(withoutCursor)).toEqual(seen.slice(2).map(withoutCursor))
})

test('FE5 an iteration ends with the problem if the feed does not reach back', async () => {
  const client = await newBucket(await sharedServer(), 'expired')
  const { ended } = follow(client, { after: 'AAAAAAAAAAAAMQ' })
  const error = await ended
  expect(error).toBeInstanceOf(ProblemError)
  expect(error).toMatchObject({ status: 410, problem: { code: 'cursor-expired' } })
})

test('FE7 an iteration outlives a kill of the service, and misses and repeats nothing', async () => {
  const first = await startServer()
  const { port } = new URL(first.url)
  const client = createClient({ url: first.url, token: first.token, retry: { attempts: 1, maxDelay: 100 } })
  const { seen } = follow(client)
  await until('the iteration waits', async () =>
    /mediabucket_feed_streams_open 1/.test(await (await fetch(`${first.url}/metrics`)).text()),
  )
  const one = await client.upload(new Uint8Array(1))
  await until('a change', () => seen.length === 1)
  await first.kill()
  await using second = await startServer({ MEDIABUCKET_PORT: port }, first.data)
  const two = await client.upload(new Uint8Array(2))
  await until('another change', () => seen.length === 2)
  expect(seen.map(brief)).toEqual([`added ${one.id}`, `added ${two.id}`])
  expect(second.url).toBe(first.url)
})
