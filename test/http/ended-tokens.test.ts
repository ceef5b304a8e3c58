import { cp } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createClient } from '../../packages/client/src/index.ts'
import { rotateToken } from '../../packages/server/src/access/token-operations.ts'
import { withCatalog } from '../../packages/server/src/cli/admin/open-catalog.ts'
import { Fault } from '../../packages/server/src/core/faults.ts'
import { hashToken, operator } from '../../packages/server/src/core/token-rules.ts'
import { isOfService } from '../../packages/server/src/http/openapi/description.ts'
import { readConfig } from '../../packages/server/src/service/config.ts'
import { runHere } from '../harness/commands.ts'
import { databaseSettings, usePostgres } from '../harness/database.ts'
import { temporaryDirectory } from '../harness/directory.ts'
import { fullBucket, type RouteRequest, requestsOf, stateOf } from '../harness/full-bucket.ts'
import { expectProblem } from '../harness/problem.ts'
import { catalogRows } from '../harness/rows.ts'
import { startServer, type TestServer } from '../harness/server.ts'
import { parseProblem, readTokenList } from '../harness/wire.ts'

const requests = requestsOf(({ needs }) => needs !== 'nothing')

const rotate = async (server: TestServer, manager: string, id: string, overlap_seconds = 86_400) =>
  server.request(`/api/tokens/${id}/rotate`, {
    method: 'POST',
    headers: { authorization: manager, 'content-type': 'application/json' },
    body: JSON.stringify({ overlap_seconds, expires_at: null }),
  })

/** Moves the expiry of a token into the past. */
async function expire({ data }: TestServer, id: string, minutes: number): Promise<void> {
  const rows = await catalogRows(data)
  await rows.change(`UPDATE tokens SET expires_at = ${Date.now() - minutes * 60_000} WHERE id = '${id}'`)
}

type Full = Awaited<ReturnType<typeof fullBucket>>

/** How a token ends, and the code of the problem that every route then has, except as in R14. */
const ends: readonly {
  readonly title: string
  readonly code: string
  readonly hasHour?: boolean
  readonly end: (server: TestServer, full: Full) => Promise<unknown>
}[] = [
  {
    title: 'has expired, within the hour',
    code: 'token-expired',
    hasHour: true,
    end: (server, { token }) => expire(server, token.id, 30),
  },
  {
    title: 'has expired, after the hour',
    code: 'token-expired',
    end: (server, { token }) => expire(server, token.id, 61),
  },
  {
    title: 'was replaced without an overlap',
    code: 'token-expired',
    hasHour: true,
    end: (server, { token, manager }) => rotate(server, manager.authorization, token.id, 0),
  },
  {
    title: 'was replaced, and its overlap and its hour have ended',
    code: 'token-expired',
    async end(server, { token, manager }) {
      await rotate(server, manager.authorization, token.id)
      await expire(server, token.id, 61)
    },
  },
  {
    title: 'was revoked',
    code: 'token-revoked',
    end: (server, { token }) => runHere(server.data, 'token revoke', token.id),
  },
  {
    title: 'was revoked after it had expired',
    code: 'token-revoked',
    async end(server, { token }) {
      await expire(server, token.id, 30)
      await runHere(server.data, 'token revoke', token.id)
    },
  },
]

describe.each(['sqlite', 'postgres'] as const)('A2, A9, R14 with %s', (engine) => {
  let server: TestServer
  beforeAll(async () => {
    const restore = engine === 'postgres' ? usePostgres() : () => undefined
    try {
      server = await startServer({
        ...{ MEDIABUCKET_ADDRESS_RATE: 'off', MEDIABUCKET_AUTH_FAILURE_RATE: 'off' },
        MEDIABUCKET_URL_UPLOADS: 'public',
      })
    } finally {
      restore()
    }
  })
  afterAll(() => server[Symbol.asyncDispose]())

  test.each(ends)(
    'A2, A9, R14 a token that $title does nothing else, on any route',
    async ({ code, hasHour = false, end }) => {
      const full = await fullBucket(server)
      await end(server, full)
      const { authorization } = full.token
      const before = await stateOf(server)
      const refused = async (request: RouteRequest, upload: string) => {
        const response = await full.send(request, { authorization, upload })
        const what = `${request.method} ${request.pattern} ${request.override ?? ''}`
        expect([what, response.status]).toEqual([what, 401])
        if (request.method === 'HEAD') return
        expect([what, parseProblem(await response.text()).code]).toEqual([what, code])
      }
      for (const request of requests) {
        const onUpload = request.pattern === '/api/uploads/:id'
        const method = request.override ?? request.method
        for (const upload of onUpload ? [full.foreign, full.finished, full.unfinished] : [full.unfinished]) {
          const isContinued = hasHour && onUpload && upload !== full.foreign
          // The contract: HEAD of its own uploads, PATCH and DELETE of its unfinished ones.
          if (isContinued && (upload === full.unfinished || method === 'HEAD')) continue
          await refused(request, upload)
        }
      }
      expect(await stateOf(server)).toBe(before)
      if (!hasHour) return
      const { tus, finished, unfinished } = full
      expect([(await tus.head(finished)).status, await tus.offset(unfinished)]).toEqual([200, 2])
      expect((await tus.sendChunk(unfinished, 2, 'cd')).status).toBe(204)
      // It has become an item.
      const again = await tus.terminate(unfinished)
      expect([again.status, (await tus.head(unfinished)).headers.get('content-location')]).toEqual([
        401,
        expect.stringContaining('/api/media/'),
      ])
      const list = await server.request('/api/bucket', {
        headers: { authorization: full.manager.authorization },
      })
      expect(await list.json()).toMatchObject({ items: 3 })
    },
  )

  test('R14 for an hour, an expired token removes an unfinished upload that it created', async () => {
    const { token, tus, unfinished } = await fullBucket(server)
    await expire(server, token.id, 59)
    expect((await tus.terminate(unfinished)).status).toBe(204)
    expect((await tus.head(unfinished)).status).toBe(401)
  })

  test('R14, R15 an upload of the client ends with its media object, also if its token expires before the last chunk', async () => {
    const { token, item } = await fullBucket(server)
    const client = createClient({ url: server.url, token: token.token })
    const media = await client.upload(Buffer.from('abcd'), {
      piecesAbove: 0,
      beforeLastChunk: () => expire(server, token.id, 59),
    })
    expect(media.size).toBe(4)
    const read = (id: string) =>
      server.request(`/api/media/${id}`, { headers: { authorization: token.authorization } })
    await expectProblem(await read(item.id), 401, 'token-expired')
    await expire(server, token.id, 61)
    await expectProblem(await read(media.id), 401, 'token-expired')
  })

  test('T8 a replaced token works on every route until its overlap ends', async () => {
    const full = await fullBucket(server)
    expect((await rotate(server, full.manager.authorization, full.token.id)).status).toBe(201)
    for (const request of requests) {
      // What ends the token, or waits for events.
      if (isOfService(request.description)) continue
      if (request.pattern === '/api/tokens/:id' || request.pattern.startsWith('/api/changes')) continue
      const { status } = await full.send(request, { authorization: full.token.authorization })
      const what = `${request.method} ${request.pattern}`
      expect([what, [401, 403, 500].includes(status)]).toEqual([what, false])
    }
  })

  test('A7 the tokens of a deleted bucket have no hour', async () => {
    const full = await fullBucket(server)
    await server.command('bucket', 'delete', full.bucket, '--yes')
    for (const request of requests) {
      const { status } = await full.send(request, { authorization: full.token.authorization })
      expect([request.pattern, status]).toEqual([request.pattern, 401])
    }
  })

  test('T8 of concurrent replacements of a token by two processes, one succeeds', async () => {
    const { token, manager } = await fullBucket(server)
    const { MEDIABUCKET_DATABASE_URL: url } = await databaseSettings(server.data)
    await using directory = await temporaryDirectory()
    // Both servers use one database, and have the identity of one directory of bytes.
    await cp(join(server.data, 'blobs'), join(directory.path, 'blobs'), { recursive: true })
    await using other =
      url === undefined ? null : await startServer({ MEDIABUCKET_DATABASE_URL: url }, directory.path)
    const servers = [server, other ?? server, server, other ?? server]
    // On SQLite, a command opens the catalog beside the server.
    const { config } = readConfig({ MEDIABUCKET_DATA: server.data })
    const command = () =>
      withCatalog(config, async (catalog) => {
        const grant = await catalog.findGrant(hashToken(manager.token))
        if (grant === null) throw new Error('the token exists')
        return await rotateToken(
          catalog,
          grant,
          token.id,
          { overlap: 60_000, expiresAt: null },
          Date.now(),
          operator('test'),
        ).then(
          () => 201,
          (error: unknown) => (error instanceof Fault && error.code === 'managed-token-inactive' ? 409 : 0),
        )
      })
    const statuses = await Promise.all([
      ...servers.map(async (each) => (await rotate(each, manager.authorization, token.id)).status),
      ...(url === undefined ? [command(), command()] : []),
    ])
    expect(statuses.toSorted()).toEqual([201, ...Array(statuses.length - 1).fill(409)])
    const list = await server.request('/api/tokens', { headers: { authorization: manager.authorization } })
    expect(readTokenList(await list.json()).data).toHaveLength(4)
  })
})
