import { randomUUID } from 'node:crypto'
import { beforeAll, expect, test } from 'vitest'
import { createServiceClient, type ServiceClient } from '../../packages/client/src/index.ts'
import { sharedServer } from '../harness/shared-server.ts'
import { makeToken } from '../harness/token.ts'

let service: ServiceClient
beforeAll(async () => {
  const server = await sharedServer()
  const scopes = 'buckets:manage,tokens:manage,media:read,media:write'
  const { token } = await makeToken(server, '--service', '--scope', scopes)
  service = createServiceClient({ url: server.url, token })
})

test('BK4 to BK13 a client of the service creates, reads, sets, lists, fills and deletes buckets', async () => {
  const name = randomUUID()
  const idempotencyKey = randomUUID()
  const settings = { max_bytes: 1_000, max_file_size: 100, types: ['text/*'], private: true }
  const expiresAt = new Date(Date.now() + 86_400_000)
  const bucket = { name, ...settings, token: { scopes: ['media:write'], name: 'app', expiresAt } }
  const created = await service.buckets.create(bucket, { idempotencyKey })
  expect(created).toMatchObject({ name, ...settings, items: 0 })
  expect(created.token).toMatchObject({ bucket: name, name: 'app', expires_at: expiresAt.toISOString() })
  const again = await service.buckets.create(bucket, { idempotencyKey })
  expect(again.token?.token).toBe(created.token?.token)
  await expect(service.buckets.create(bucket)).rejects.toMatchObject({ status: 409 })

  const { bucket: found, etag } = await service.buckets.get(name)
  expect(found).toMatchObject({ name, ...settings })
  const ifMatch = etag ?? ''
  const changed = await service.buckets.set(name, { max_file_size: null, trash_days: 2 }, { ifMatch })
  expect(changed.bucket).toMatchObject({ max_file_size: null, trash_days: 2, max_bytes: 1_000 })
  expect(changed.etag).not.toBe(etag)
  const late = service.buckets.set(name, { max_bytes: null }, { ifMatch })
  await expect(late).rejects.toMatchObject({ status: 412 })
  await expect(service.buckets.get('nobody')).rejects.toMatchObject({ status: 404 })

  const granted = await service.buckets.createToken(name, { scopes: ['media:read'] })
  expect(granted).toMatchObject({ bucket: name, scopes: ['media:read'] })
  await service.bucket(name).upload(new File(['text'], 'a.txt', { type: 'text/plain' }))
  const { data, totals } = await service.buckets.page({ name, order: 'bytes', limit: 1 })
  expect([data.map((one) => one.name), totals]).toEqual([[name], { buckets: 1, items: 1, bytes: 4 }])
  const listed: string[] = []
  for await (const one of service.buckets.list({ name: name.slice(0, 20) })) listed.push(one.name)
  expect(listed).toEqual([name])

  await expect(service.buckets.delete(name)).rejects.toMatchObject({ status: 409 })
  const stale = service.buckets.delete(name, { withItems: true, ifMatch })
  await expect(stale).rejects.toMatchObject({ status: 412 })
  await service.buckets.delete(name, { withItems: true })
  await expect(service.buckets.get(name)).rejects.toMatchObject({ status: 404 })
})
