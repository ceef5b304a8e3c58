import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { usePostgres } from '../harness/database.ts'
import { readEvents } from '../harness/events.ts'
import { expectProblem } from '../harness/problem.ts'
import { startServer, type TestServer } from '../harness/server.ts'
import { makeToken } from '../harness/token.ts'
import { chunkType } from '../harness/tus.ts'
import { uniqueName } from '../harness/unique-name.ts'
import { until } from '../harness/until.ts'
import {
  readChanges,
  readCreatedToken,
  readItem,
  readLink,
  readPage,
  readTokenList,
} from '../harness/wire.ts'

describe.each(['sqlite', 'postgres'] as const)('service tokens with %s', (engine) => {
  let server: TestServer
  beforeAll(async () => {
    const restore = engine === 'postgres' ? usePostgres() : () => undefined
    try {
      server = await startServer({ MEDIABUCKET_AUDIT: 'changes', MEDIABUCKET_ADDRESS_RATE: 'off' })
    } finally {
      restore()
    }
  })
  afterAll(() => server[Symbol.asyncDispose]())

  type Headers = Readonly<Record<string, string>>

  /** A service token, and requests with it. */
  async function service(...scopes: string[]) {
    const made = await makeToken(server, '--service', '--name', 'shop', '--scope', scopes.join(','))
    const { authorization } = made
    const send = (path: string, bucket: string | null, init: RequestInit = {}) => {
      const sent = new Headers(init.headers)
      sent.set('authorization', authorization)
      if (bucket !== null) sent.set('mediabucket-bucket', bucket)
      return server.request(path, { ...init, headers: sent })
    }
    const upload = async (bucket: string, text: string, headers: Headers = {}) =>
      readItem(await send('/api/media', bucket, { method: 'POST', body: text, headers }))
    const sendJson = (method: string, path: string, bucket: string | null, body: object) =>
      send(path, bucket, {
        method,
        body: JSON.stringify(body),
        headers: { 'content-type': 'application/json' },
      })
    return { ...made, send, sendJson, upload }
  }

  /** Two new buckets. */
  async function twoBuckets() {
    const names = [uniqueName('one'), uniqueName('other')] as const
    for (const name of names) await makeToken(server, '--bucket', name)
    return names
  }

  /** Deletes a bucket, and creates one of the same name. */
  async function replaceBucket(name: string): Promise<void> {
    const { send, sendJson } = await service('buckets:manage')
    expect((await send(`/api/buckets/${name}?items=delete`, null, { method: 'DELETE' })).status).toBe(204)
    expect((await sendJson('POST', '/api/buckets', null, { name })).status).toBe(201)
  }

  const gaugeIs = (name: string, value: number) => async () =>
    new RegExp(`^${name} ${value}$`, 'm').test(await (await fetch(`${server.url}/metrics`)).text())

  /** The body of an upload that ends when `end` is called. */
  function openBody() {
    const { promise, resolve } = Promise.withResolvers<void>()
    const body = new ReadableStream<Uint8Array>({
      async start(controller) {
        controller.enqueue(new Uint8Array(100_000).fill(65))
        await promise
        controller.enqueue(new Uint8Array(100_000).fill(66))
        controller.close()
      },
    })
    return { init: { body, duplex: 'half', method: 'POST' } as RequestInit, end: resolve }
  }

  test('ST1, ST2 a service token uploads to the bucket of the header, and lists it', async () => {
    const [one, other] = await twoBuckets()
    const { token, id, send, upload } = await service('media:read', 'media:write')
    expect([token, id]).toEqual([
      expect.stringMatching(/^mbks_[0-9a-z]{38}$/),
      expect.stringMatching(/^svc_[0-9a-z]{12}$/),
    ])
    await upload(one, 'x')
    for (const path of ['/api/media', '/api/items', '/api/bucket']) {
      expect((await send(path, one)).status, path).toBe(200)
      await expectProblem(await send(path, null), 400, 'bucket-required')
      for (const unknown of [uniqueName('nobody'), '1/trash', '', 'A', `${one}, ${one}`])
        await expectProblem(await send(path, unknown), 404, 'bucket-unknown')
    }
    const totals = await Promise.all(
      [one, other].map(async (name) => (await readPage(await send('/api/media', name))).total),
    )
    expect(totals).toEqual([1, 0])
  })

  test('BK1, H12, Y9 a name or an id that nothing can have is refused as an unknown one', async () => {
    const { send, sendJson } = await service('buckets:manage', 'tokens:manage', 'media:read')
    for (const name of ['%00', 'a%00b', 'A', '1%2Fdeleted', 'a'.repeat(64)]) {
      const path = `/api/buckets/${name}`
      for (const response of await Promise.all([
        send(path, null),
        send(path, null, { method: 'DELETE' }),
        send(`${path}/usage`, null),
        sendJson('PATCH', path, null, { max_items: 1 }),
        sendJson('POST', `${path}/tokens`, null, { scopes: ['media:read'] }),
      ]))
        await expectProblem(response, 404, 'bucket-unknown')
    }
    await expectProblem(await send('/api/keys/a%00b', null, { method: 'DELETE' }), 404, 'key-unknown')
    await expectProblem(await send('/api/audit?token=a%00b', null), 400, 'parameter-malformed')
    await expectProblem(await send('/api/audit?bucket=a%00b', null), 404, 'bucket-unknown')
  })

  test('ST3 a token of a bucket may name its bucket, and no other', async () => {
    const [one, other] = await twoBuckets()
    const { authorization } = await makeToken(server, '--bucket', one)
    const list = (bucket: string) =>
      server.request('/api/media', { headers: { authorization, 'mediabucket-bucket': bucket } })
    expect((await list(one)).status).toBe(200)
    const problems = await Promise.all(
      [other, uniqueName('nobody'), '', `${one}, ${one}`].map(async (name) => {
        const { instance: _, ...problem } = Object(await (await list(name)).json())
        return problem
      }),
    )
    expect(problems[0]).toMatchObject({ status: 403, code: 'bucket-forbidden' })
    // Nothing shows which buckets exist.
    for (const problem of problems) expect(problem).toEqual(problems[0])
  })

  test('ST2 requests at once for different buckets get their own pages, from all caches too', async () => {
    const buckets = await twoBuckets()
    const { authorization, send, upload } = await service('media:read', 'media:write')
    const urls = new Map<string, string>()
    for (const bucket of buckets) urls.set(bucket, (await upload(bucket, bucket)).url)
    const own = await makeToken(server, '--bucket', buckets[0])
    for (let round = 0; round < 4; round += 1)
      await Promise.all(
        Array.from({ length: 40 }, async (_, index) => {
          const bucket = buckets[index % 2] ?? ''
          const { data } = await readPage(await send('/api/media', bucket))
          expect(data).toEqual([urls.get(bucket)])
          if (index % 10 > 0) return
          await expectProblem(await send('/api/media', null), 400, 'bucket-required')
          const page = await server.request('/api/media', { headers: { authorization: own.authorization } })
          expect((await readPage(page)).data).toEqual([urls.get(buckets[0])])
        }),
      )
    expect(authorization).toMatch(/^Bearer mbks_/)
  })

  test('ST8, ST9, L16 an ETag of one bucket never matches in another one', async () => {
    const [one, other] = await twoBuckets()
    const { send } = await service('media:read')
    for (const path of ['/api/media', '/api/items', '/api/items?page=1', '/api/media?page=2']) {
      const first = await send(path, one)
      const etag = first.headers.get('etag') ?? ''
      expect(first.headers.get('vary')).toMatch(/Authorization, Mediabucket-Bucket/)
      expect(first.headers.get('cache-control')).toBe('private, no-cache')
      const tagged = (bucket: string) => send(path, bucket, { headers: { 'if-none-match': etag } })
      expect([(await tagged(one)).status, (await tagged(other)).status]).toEqual([304, 200])
      expect((await tagged(other)).headers.get('etag')).not.toBe(etag)
    }
    const lists = ['/api/labels', '/api/trash', '/api/tokens', '/api/webhooks', '/api/bucket']
    const all = await service('media:read', 'media:delete', 'tokens:manage', 'webhooks:manage')
    for (const path of lists)
      expect([path, (await all.send(path, one)).headers.get('cache-control')]).toEqual([path, 'no-store'])
  })

  test('I4, ST8 an idempotency key in one bucket is another key in the next one', async () => {
    const [one, other] = await twoBuckets()
    const { upload } = await service('media:write')
    const keyed = { 'idempotency-key': 'avatar' }
    const [first, second] = [await upload(one, 'x', keyed), await upload(other, 'x', keyed)]
    expect(second.id).not.toBe(first.id)
    expect([(await upload(one, 'x', keyed)).id, (await upload(other, 'x', keyed)).id]).toEqual([
      first.id,
      second.id,
    ])
  })

  test('ST8, R1 a resumable upload of one bucket does not exist in another one', async () => {
    const [one, other] = await twoBuckets()
    const { send } = await service('media:read', 'media:write')
    const created = await send('/api/uploads', one, {
      method: 'POST',
      headers: { 'tus-resumable': '1.0.0', 'upload-length': '4' },
    })
    const { pathname } = new URL(created.headers.get('location') ?? '')
    const chunk = (bucket: string | null, offset: string) =>
      send(pathname, bucket, {
        ...{ method: 'PATCH', body: 'ab' },
        headers: { 'tus-resumable': '1.0.0', 'content-type': chunkType, 'upload-offset': offset },
      })
    const of = (method: string, bucket: string | null) =>
      send(pathname, bucket, { method, headers: { 'tus-resumable': '1.0.0' } })
    await expectProblem(await chunk(other, '0'), 404, 'upload-unknown')
    expect((await of('HEAD', other)).status).toBe(404)
    await expectProblem(await of('DELETE', other), 404, 'upload-unknown')
    await expectProblem(await chunk(null, '0'), 400, 'bucket-required')
    expect([(await chunk(one, '0')).status, (await chunk(one, '2')).status]).toEqual([204, 204])
    const total = async (bucket: string) => (await readPage(await send('/api/media', bucket))).total
    expect([await total(one), await total(other)]).toEqual([1, 0])
  })

  test('ST8, FE5 a cursor of one bucket is refused in another one', async () => {
    const [one, other] = await twoBuckets()
    const { send, upload } = await service('media:read', 'media:write')
    for (const text of ['1', '2', '3']) await upload(one, text)
    const { next_cursor } = await readChanges(await send('/api/changes?limit=1', one))
    await expectProblem(await send(`/api/changes?after=${next_cursor}`, other), 410, 'cursor-expired')
    const { next_cursor: after } = Object(await (await send('/api/items?limit=1', one)).json())
    await expectProblem(await send(`/api/items?after=${after}`, other), 400, 'cursor-malformed')
  })

  test('ST2, H1 private bytes need the header, and a signed link of the token needs nothing', async () => {
    const [one, other] = await twoBuckets()
    await server.command('bucket', 'set', one, '--private', 'on')
    const { send, sendJson, upload } = await service('media:read', 'media:write')
    const { id, url } = await upload(one, 'private')
    const path = new URL(url).pathname
    expect(await (await send(path, one)).text()).toBe('private')
    await expectProblem(await send(path, null), 400, 'bucket-required')
    await expectProblem(await send(path, other), 404, 'media-unknown')
    await expectProblem(await send('/media/00000000000000000000000000', null), 400, 'bucket-required')
    await expectProblem(await sendJson('POST', `/api/media/${id}/links`, other, {}), 404, 'media-unknown')
    const link = await readLink(await sendJson('POST', `/api/media/${id}/links`, one, { expires_in: 60 }))
    expect(await (await fetch(link.url)).text()).toBe('private')
  })

  test('ST8, BK10 a bucket is deleted, and created again, while requests of a service token run', async () => {
    const [name] = await twoBuckets()
    const { send, upload } = await service('media:read', 'media:write', 'tokens:manage')
    await upload(name, 'of the first bucket')
    const events = readEvents(
      await send('/api/changes?since=now', name, { headers: { accept: 'text/event-stream' } }),
    )
    const waiting = send('/api/changes?since=now&wait=60', name)
    await until('both are open', gaugeIs('mediabucket_feed_streams_open', 2))
    const { init, end } = openBody()
    const uploading = send('/api/media', name, init)
    await until('the upload runs', gaugeIs('mediabucket_active_uploads', 1))
    const { init: slow, end: endSlow } = openBody()
    const granting = send('/api/tokens', name, { ...slow, headers: { 'content-type': 'application/json' } })
    await replaceBucket(name)
    end()
    endSlow()
    await expectProblem(await waiting, 404, 'bucket-unknown')
    await events.end()
    expect(events.events).toEqual([])
    await expectProblem(await uploading, 404, 'bucket-unknown')
    expect((await granting).status).toBeGreaterThanOrEqual(400)
    // The token is as valid as before, in the new bucket, which is empty.
    expect(await readPage(await send('/api/media', name))).toMatchObject({ total: 0 })
    await upload(name, 'of the second bucket')
    expect(await readPage(await send('/api/media', name))).toMatchObject({ total: 1 })
    expect(events.events).toEqual([])
  })

  test('A7, ST4 a token that is revoked during an upload ends it no earlier than others, and is refused then', async () => {
    const [one] = await twoBuckets()
    const { id, send } = await service('media:read', 'media:write')
    const { init, end } = openBody()
    const uploading = send('/api/media', one, init)
    await until('the upload runs', gaugeIs('mediabucket_active_uploads', 1))
    await server.command('token', 'revoke', id)
    end()
    expect((await uploading).status).toBe(201)
    await expectProblem(await send('/api/media', one), 401, 'token-revoked')
    await expectProblem(await send('/api/token', null), 401, 'token-revoked')
  })

  test('ST4, T8 a service token is replaced with an overlap, and expires', async () => {
    const [one] = await twoBuckets()
    const first = await service('media:read')
    const { stdout, stderr } = await server.command('token', 'rotate', first.id, '--overlap', '1h')
    expect(stderr).toMatch(/^Created the token svc_\w+, which replaces svc_\w+ "shop" of the service\./m)
    const authorization = `Bearer ${stdout.trim()}`
    const list = (headers: Headers) =>
      server.request('/api/media', { headers: { ...headers, 'mediabucket-bucket': one } })
    expect([(await list({ authorization })).status, (await first.send('/api/media', one)).status]).toEqual([
      200, 200,
    ])
    const own = async (headers: Headers) =>
      Object(await (await server.request('/api/token', { headers })).json())
    expect(await own({ authorization })).toMatchObject({
      name: 'shop',
      scopes: ['media:read'],
      expires_at: null,
    })
    const { expires_at } = await own({ authorization: first.authorization })
    expect(Date.parse(expires_at) - Date.now()).toBeGreaterThan(3_000_000)
    await expect(server.command('token', 'rotate', first.id)).rejects.toThrow(/has been replaced before/)
    const short = await makeToken(server, '--service', '--scope', 'media:read', '--expires', '1ms')
    await expectProblem(await list({ authorization: short.authorization }), 401, 'token-expired')
    const { stdout: listed } = await server.command('token', 'list', '--service', '--json')
    const rows = listed
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line))
    expect(rows.find(({ id }) => id === first.id)).toMatchObject({
      ...{ bucket: null, state: 'active', last_used_at: expect.any(String) },
    })
  })

  test('ST5 GET /api/token describes a service token, whatever the header names', async () => {
    const { id, send } = await service('buckets:manage', 'media:read')
    for (const bucket of [null, uniqueName('nobody')])
      expect(await (await send('/api/token', bucket)).json()).toEqual({
        ...{ id, name: 'shop', bucket: null, scopes: ['buckets:manage', 'media:read'] },
        ...{ created_at: expect.any(String), expires_at: null, note: null },
        ...{ limits: null, uploaded: null, left: null },
      })
  })

  test('ST6 a service token manages the tokens of a bucket, and no service token', async () => {
    const [one, other] = await twoBuckets()
    const manager = await service('tokens:manage', 'media:read', 'buckets:manage')
    const { sendJson, send } = manager
    const created = await sendJson('POST', '/api/tokens', one, { scopes: ['media:read'], name: 'reader' })
    const token = readCreatedToken(await created.json())
    expect(token).toMatchObject({
      bucket: one,
      scopes: ['media:read'],
      token: expect.stringMatching(/^mbkt_/),
    })
    const refused = await sendJson('POST', '/api/tokens', one, { scopes: ['media:write'] })
    await expectProblem(refused, 403, 'scope-missing')
    const named = await sendJson('POST', '/api/tokens', one, { scopes: ['buckets:manage'] })
    const problem = await expectProblem(named, 400, 'json-malformed')
    expect(JSON.stringify(problem)).toContain('Only service tokens have the scope buckets:manage')
    const tokens = readTokenList(await (await send('/api/tokens', one)).json())
    expect(tokens.data).toHaveLength(2)
    expect(JSON.stringify(tokens)).not.toContain('svc_')
    for (const [bucket, id] of [
      [one, manager.id],
      [other, token.id],
    ] as const) {
      const path = `/api/tokens/${id}`
      await expectProblem(await send(path, bucket, { method: 'DELETE' }), 404, 'managed-token-unknown')
      await expectProblem(
        await sendJson('POST', `${path}/rotate`, bucket, { expires_at: null }),
        404,
        'managed-token-unknown',
      )
    }
    expect((await send(`/api/tokens/${token.id}`, one, { method: 'DELETE' })).status).toBe(204)
  })

  test('W2, ST4 requests of a service token are counted together for all buckets, refused ones too', async () => {
    await using limited = await startServer({ MEDIABUCKET_TOKEN_RATE: '4/1h' })
    const { authorization } = await makeToken(limited, '--service', '--scope', 'media:read')
    const buckets = [limited.bucket, uniqueName('nobody'), null, limited.bucket, limited.bucket, null]
    const statuses: number[] = []
    for (const bucket of buckets) {
      const named: Headers = bucket === null ? {} : { 'mediabucket-bucket': bucket }
      const { status } = await limited.request('/api/media', { headers: { authorization, ...named } })
      statuses.push(status)
    }
    expect(statuses).toEqual([200, 404, 400, 200, 429, 429])
  })

  test('ST10 the audit log names the service token of each request', async () => {
    const [one] = await twoBuckets()
    const { id, upload, send } = await service('media:write', 'media:delete')
    const item = await upload(one, 'x')
    await send(`/api/media/${item.id}`, one, { method: 'DELETE' })
    await server.command('token', 'revoke', id)
    const { stdout } = await server.command('audit', '--token', id, '--json')
    const events = stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line))
    expect(events.map(({ metadata }) => metadata.event_code)).toEqual(['upload', 'delete'])
    for (const action of ['token-create', 'token-revoke']) {
      const all = (await server.command('audit', '--action', action, '--json')).stdout.trim().split('\n')
      expect(all.filter((line) => line.includes(id)).map((line) => JSON.parse(line))).toMatchObject([
        { entity: { uid: id, name: 'shop' } },
      ])
    }
  })
})
