import { beforeAll, expect, test } from 'vitest'
import { createServiceClient } from '../../packages/client/src/index.ts'
import { expectProblem } from '../harness/problem.ts'
import { startServer, type TestServer } from '../harness/server.ts'
import { makeToken } from '../harness/token.ts'
import { atWorkerEnd } from '../harness/worker-end.ts'

let server: TestServer
beforeAll(async () => {
  server = await startServer({ MEDIABUCKET_AUDIT: 'changes', MEDIABUCKET_ADDRESS_RATE: 'off' })
  atWorkerEnd(() => server[Symbol.asyncDispose]())
})

async function collect<T>(values: AsyncIterable<T>): Promise<T[]> {
  const found: T[] = []
  for await (const value of values) found.push(value)
  return found
}

/** A client of the whole service, with a token of these scopes. */
async function serviceWith(...scopes: string[]) {
  const made = await makeToken(server, '--service', '--scope', scopes.join(','))
  return { ...made, service: createServiceClient({ url: server.url, token: made.token }) }
}

test('H12 keys are listed, created and removed over HTTP', async () => {
  const { service, authorization, id } = await serviceWith('buckets:manage', 'media:read')
  const first = await service.keys.rotate()
  const second = await service.keys.rotate()
  const listed = await service.keys.list()
  expect(listed.slice(-2)).toEqual([{ ...first, state: 'verifies' }, second])
  expect(second).toEqual({ id: expect.any(String), state: 'signs', created_at: expect.any(String) })
  await service.keys.remove(second.id)
  // Another key signs now, not the older one.
  const left = await service.keys.list()
  expect(left.at(-1)).toMatchObject({ state: 'signs' })
  expect(left.map((key) => key.id)).not.toContain(second.id)
  expect(left.at(-1)?.id).not.toBe(first.id)
  await expect(service.keys.remove(second.id)).rejects.toMatchObject({ status: 404 })
  const events = await collect(service.events({ token: id }))
  expect(events.map(({ action, target }) => [action, target]).slice(0, 2)).toEqual([
    ['key-create', first.id],
    ['key-create', second.id],
  ])
  const secrets = await server.request('/api/keys', { headers: { authorization } })
  expect(Object.keys(Object(await secrets.json()).data[0])).toEqual(['id', 'state', 'created_at'])
})

test('Y9 events are listed with cursors, each once, and selected as by the command', async () => {
  const { service } = await serviceWith('buckets:manage', 'media:read', 'media:write')
  const { authorization: ofBucket } = await makeToken(server, '--bucket', 'listed')
  const send = (body: string) =>
    server.request('/api/media', { method: 'POST', body, headers: { authorization: ofBucket } })
  for (const body of ['a', 'b', 'c']) await send(body)
  const all = await collect(service.events())
  expect(new Set(all.map(({ uid }) => uid)).size).toBe(all.length)
  const uploads = await collect(service.events({ bucket: 'listed', action: 'upload' }))
  expect(uploads).toHaveLength(3)
  expect(uploads[0]).toMatchObject({
    ...{ action: 'upload', bucket: 'listed', size: 1 },
    actor: { kind: 'client', subject: null, address: '127.0.0.1' },
  })
  const [, second] = uploads
  expect(await collect(service.events({ item: second?.target ?? '' }))).toEqual([second])
  const { authorization } = await serviceWith('buckets:manage', 'media:read')
  const read = async (query: string) => {
    const response = await server.request(`/api/audit?${query}`, { headers: { authorization } })
    return Object(await response.json())
  }
  const seen: string[] = []
  for (let after = ''; ; ) {
    const page = await read(
      `action=upload&bucket=listed&limit=1${after && `&after=${encodeURIComponent(after)}`}`,
    )
    if (page.data.length === 0) break
    seen.push(page.data[0].uid)
    after = page.next_cursor
  }
  expect(seen).toEqual(uploads.map(({ uid }) => uid))
  const { next_cursor } = await read('limit=500')
  await send('d')
  const later = await read(`action=upload&after=${encodeURIComponent(next_cursor)}`)
  expect(later.data).toHaveLength(1)
})

test('Y9 events need both scopes, and their parameters are checked', async () => {
  const { authorization } = await serviceWith('buckets:manage')
  const get = (path: string, by = authorization) => server.request(path, { headers: { authorization: by } })
  await expectProblem(await get('/api/audit'), 403, 'scope-missing')
  await expectProblem(await get('/api/audit', `Bearer ${server.token}`), 403, 'scope-missing')
  const { authorization: both } = await serviceWith('buckets:manage', 'media:read')
  for (const query of ['limit=0', 'since=yesterday', 'action=none', 'item=x'])
    await expectProblem(await get(`/api/audit?${query}`, both), 400, 'parameter-malformed')
  await expectProblem(await get('/api/audit?after=x', both), 400, 'cursor-malformed')
  await expectProblem(await get('/api/audit?bucket=never', both), 404, 'bucket-unknown')
})
