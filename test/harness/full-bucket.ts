import { extname } from 'node:path'
import type { OperationDescription } from '../../packages/server/src/http/openapi/description.ts'
import { serviceRoutes } from '../../packages/server/src/service/routes.ts'
import { runHere } from './commands.ts'
import { catalogRows, tablesOf } from './rows.ts'
import type { TestServer } from './server.ts'
import { makeToken } from './token.ts'
import { tusOf } from './tus.ts'
import { uniqueName } from './unique-name.ts'
import { upload } from './upload.ts'
import { readCreatedWebhook } from './wire.ts'

/** Stands for all that routes use: it can be called, and each of its members is itself. */
const anything: unknown = new Proxy(() => undefined, {
  get: (_, name) => (name === Symbol.toPrimitive ? () => 'x' : anything),
  apply: () => anything,
})

/** A request of the route table. */
export interface RouteRequest {
  readonly method: string
  readonly pattern: string
  /** The header `X-HTTP-Method-Override`. */
  readonly override: string | null
  readonly description: OperationDescription
}

/** The requests of the table of routes whose descriptions are selected. A route for GET responds to HEAD too. */
export const requestsOf = (
  isSelected: (description: OperationDescription) => boolean,
): readonly RouteRequest[] =>
  serviceRoutes(anything as never, anything as never, null).flatMap(({ method, pattern, description }) => {
    if (description === null || !isSelected(description)) return []
    const methods = method === 'GET' ? ['GET', 'HEAD'] : [method]
    const overrides =
      method === 'POST' && pattern === '/api/uploads/:id' ? ['HEAD', 'PATCH', 'DELETE'] : [null]
    return methods.flatMap((each) =>
      overrides.map((override) => ({ method: each, pattern, override, description })),
    )
  })

/**
 * A private bucket with something for each route: by the prefix of the path, the id of what exists. `send` sends a request of the table with a token, to what
 * exists; `named` is the header Mediabucket-Bucket.
 */
export async function fullBucket(server: TestServer, bucket = uniqueName('full')) {
  const scopes = ['media:read', 'media:write', 'media:delete', 'tokens:manage', 'webhooks:manage']
  const args = ['--bucket', bucket, ...scopes.flatMap((scope) => ['--scope', scope])]
  const token = await makeToken(server, ...args)
  const manager = await makeToken(server, ...args)
  const spare = await makeToken(server, '--bucket', bucket, '--scope', 'tokens:manage')
  await runHere(server.data, 'bucket set', bucket, '--private', 'on')
  const { authorization } = token
  const tus = tusOf(server, authorization)
  const item = await upload(server, 'kept', { authorization })
  const finished = await tus.createWithLength(2)
  await tus.sendChunk(finished, 0, 'ab')
  const unfinished = await tus.createWithLength(4)
  await tus.sendChunk(unfinished, 0, 'ab')
  const foreign = await tusOf(server, manager.authorization).createWithLength(4)
  const hook = readCreatedWebhook(
    await (
      await server.request('/api/webhooks', {
        method: 'POST',
        headers: { authorization, 'content-type': 'application/json' },
        body: JSON.stringify({ url: 'https://example.org/', kinds: ['removed'] }),
      })
    ).json(),
  )
  const ids = [item.id]
  const bodies: Readonly<Record<string, object>> = {
    'PATCH /api/media/:id': { alt_text: 'kept' },
    'PATCH /api/media': { ids, labels: { album: '1' } },
    'DELETE /api/media': { ids },
    'POST /api/media/from-url': { url: 'http://10.0.0.1/' },
    'POST /api/media/:id/links': { expires_in: 60 },
    'POST /api/links': { ids, expires_in: 60 },
    'POST /api/trash/restore': { ids },
    'DELETE /api/trash': { ids },
    'POST /api/tokens': { scopes: ['tokens:manage'] },
    'POST /api/tokens/:id/rotate': { expires_at: null },
    'POST /api/webhooks': { url: 'https://example.org/' },
    'PATCH /api/webhooks/:id': { batch: 2 },
    'POST /api/webhooks/:id/rotate': {},
    'POST /api/buckets': { name: uniqueName('new') },
    'PATCH /api/buckets/:name': { max_items: 1_000 },
    'POST /api/buckets/:name/tokens': { scopes: ['tokens:manage'] },
    ...Object.fromEntries(
      ['/api/media', '/api/media/', '/v1/media', '/v1/media/'].map((path) => [`POST ${path}`, {}]),
    ),
  }
  const idOf = (pattern: string, upload: string): string => {
    if (pattern.startsWith('/api/uploads')) return upload.split('/').at(-1) ?? ''
    if (pattern === '/api/tokens/:id/rotate') return spare.id
    if (pattern.startsWith('/api/tokens')) return token.id
    return pattern.startsWith('/api/webhooks') ? hook.id : item.id
  }
  const send = (
    { method, pattern, override }: RouteRequest,
    {
      authorization,
      upload = unfinished,
      named = null,
    }: { authorization: string; upload?: string; named?: string | null },
  ): Promise<Response> => {
    const path = pattern
      .replace('/:name/:filename', `/${item.id}/a${extname(new URL(item.url).pathname)}`)
      .replace('/buckets/:name', `/buckets/${bucket}`)
      .replace(':id', idOf(pattern, upload))
      .replace(':name', new URL(item.url).pathname.split('/').at(-1) ?? '')
      .replace(':number', '1')
    const isChunk = pattern.startsWith('/api/uploads')
    const members = bodies[`${method} ${pattern}`]
    const body = isChunk ? 'cd' : members === undefined ? null : JSON.stringify(members)
    return fetch(new URL(path, server.url), {
      method,
      headers: {
        authorization,
        'tus-resumable': '1.0.0',
        accept: 'application/json',
        ...(named === null ? {} : { 'mediabucket-bucket': named }),
        ...(override === null ? {} : { 'x-http-method-override': override }),
        ...(isChunk ? { 'upload-offset': '2' } : {}),
        ...(isChunk && pattern !== '/api/uploads/:id' ? { 'upload-length': '4' } : {}),
        ...(method === 'GET' || method === 'HEAD'
          ? {}
          : { 'content-type': isChunk ? 'application/offset+octet-stream' : 'application/json' }),
      },
      ...(method === 'GET' || method === 'HEAD' ? {} : { body }),
    })
  }
  return { bucket, token, manager, tus, item, finished, unfinished, foreign, send }
}

/** Columns that the service changes at any time: for example, a webhook passes changes that are not of its kinds. */
const changedAtAnyTime = { last_used_at: null, position: null, owner: null, owned_until: null }

/** A row that a sweep of the service stores some time after the start. */
const isOfSweep = (table: string, { key }: Readonly<Record<string, unknown>>): boolean =>
  table === 'meta' && key === 'variant_sizes'

/** All rows, or those that `isIncluded`, without these columns. */
export async function stateOf(
  { data }: TestServer,
  isIncluded: (table: string, row: Readonly<Record<string, unknown>>) => boolean = () => true,
): Promise<string> {
  const rows = await catalogRows(data)
  const tables = await tablesOf(rows)
  const read = async (table: string) =>
    (await rows.read(`SELECT * FROM ${table}`))
      .filter((row) => isIncluded(table, row) && !isOfSweep(table, row))
      .map((row) =>
        JSON.stringify({ ...row, ...changedAtAnyTime }, (_, value) =>
          typeof value === 'bigint' ? `${value}` : value,
        ),
      )
      .toSorted()
  // Requests are counted at any time, and PostgreSQL's writer notes each transaction.
  return JSON.stringify(
    await Promise.all(tables.filter((name) => !['batches', 'bucket_usage'].includes(name)).map(read)),
    null,
    1,
  )
}
