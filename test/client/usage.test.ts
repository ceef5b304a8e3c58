import { afterAll, beforeAll, expect, test } from 'vitest'
import { createServiceClient, type ServiceClient } from '../../packages/client/src/index.ts'
import { startServer, type TestServer } from '../harness/server.ts'
import { makeToken } from '../harness/token.ts'

let server: TestServer
let service: ServiceClient
beforeAll(async () => {
  server = await startServer()
  const scopes = ['buckets:manage', 'media:write'].flatMap((scope) => ['--scope', scope])
  const { token } = await makeToken(server, '--service', ...scopes)
  service = createServiceClient({ url: server.url, token })
})
afterAll(() => server[Symbol.asyncDispose]())

const dayAgo = (days: number) => new Date(Date.now() - days * 86_400_000).toISOString().slice(0, 10)

test('US10 a client returns the usage of a bucket by day', async () => {
  await service.buckets.create({ name: 'customer' })
  await service.bucket('customer').upload(new Blob(['12345']))
  const days = await service.buckets.usage('customer', { from: dayAgo(2) })
  expect(days.map(({ is_partial }) => is_partial)).toEqual([false, false, true])
  expect(days.at(-1)).toMatchObject({ items: 1, bytes: 5, removed: { items: 0, bytes: 0 } })
  expect(await service.buckets.usage('customer')).toHaveLength(30)
  await expect(service.buckets.usage('nobody')).rejects.toMatchObject({ status: 404 })
})

test('US11 a client iterates over the usage of all buckets, more than one page of them', async () => {
  const names = Array.from({ length: 120 }, (_, index) => `many-${1_000 + index}`)
  for (const name of names) await service.buckets.create({ name })
  await service.buckets.delete('many-1007')
  const found: [string, boolean][] = []
  for await (const { bucket, deleted_at } of service.usage())
    if (bucket.startsWith('many-')) found.push([bucket, deleted_at !== null])
  expect(found).toEqual(names.map((name) => [name, name === 'many-1007']))
  for await (const _ of service.usage({ day: dayAgo(3) })) expect.unreachable()
})
