import { beforeAll, expect, test } from 'vitest'
import { expectProblem } from '../harness/problem.ts'
import type { SharedServer } from '../harness/server.ts'
import { sharedServer } from '../harness/shared-server.ts'
import { makeToken } from '../harness/token.ts'
import { uniqueName } from '../harness/unique-name.ts'
import { readCreatedToken, readTokenList } from '../harness/wire.ts'

let server: SharedServer
/** May manage tokens and read. */
let manager: Awaited<ReturnType<typeof makeToken>>
beforeAll(async () => {
  server = await sharedServer()
  manager = await makeManager(server.bucket)
})

const makeManager = (bucket: string, ...more: string[]) =>
  makeToken(server, '--bucket', bucket, '--scope', 'tokens:manage', '--scope', 'media:read', ...more)

const send = (method: string, path: string, body?: unknown, authorization = manager.authorization) =>
  server.request(`/api/tokens${path}`, {
    method,
    headers: { authorization, ...(body === undefined ? {} : { 'content-type': 'application/json' }) },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  })

async function created(response: Response) {
  expect([response.status, response.headers.get('cache-control')]).toEqual([201, 'no-store'])
  const token = readCreatedToken(await response.json())
  expect(token.token).toMatch(/^mbkt_/)
  return { ...token, authorization: `Bearer ${token.token}` }
}

const create = async (body: object) => created(await send('POST', '', body))
const rotate = async (id: string, body: object, authorization?: string) =>
  created(await send('POST', `/${id}/rotate`, body, authorization))

async function list(query = '', authorization?: string) {
  const response = await send('GET', query, undefined, authorization)
  expect([response.status, response.headers.get('cache-control')]).toEqual([200, 'no-store'])
  const text = await response.text()
  expect(text).not.toContain('mbkt_')
  return readTokenList(JSON.parse(text))
}

const statusWith = async (authorization: string) =>
  (await server.request('/api/media', { headers: { authorization } })).status

const millisecondsBetween = (from: string, to: string | null | undefined): number =>
  Date.parse(to ?? '') - Date.parse(from)

const inDays = (days: number) => new Date(Date.now() + days * 86_400_000).toISOString()

test('T6 a token is created with a part of the scopes, and works', async () => {
  const expires_at = inDays(1)
  const { token, authorization, ...properties } = await create({
    name: 'backup “b”',
    scopes: ['media:read'],
    expires_at,
  })
  const own = await server.request('/api/token', { headers: { authorization } })
  expect(await own.json()).toEqual(properties)
  expect(properties).toMatchObject({
    name: 'backup “b”',
    scopes: ['media:read'],
    bucket: server.bucket,
    expires_at,
  })
  expect(await statusWith(authorization)).toBe(200)
  expect(await create({ scopes: ['media:read'] })).toMatchObject({ name: '', expires_at: null })
})

test('T5 nobody grants a scope that they lack, by a new token or by a rotation', async () => {
  const refused = await send('POST', '', { scopes: ['media:read', 'media:write', 'media:delete'] })
  expect(refused.headers.get('www-authenticate')).toContain(
    'error="insufficient_scope", error_description="The token lacks a scope", scope="media:write media:delete"',
  )
  await expectProblem(refused, 403, 'scope-missing')
  const strong = await makeToken(server, '--bucket', server.bucket)
  await expectProblem(await send('POST', `/${strong.id}/rotate`, { expires_at: null }), 403, 'scope-missing')
  expect(await statusWith(strong.authorization)).toBe(200)
})

test('A3 every operation on tokens needs tokens:manage', async () => {
  const { authorization, id } = await makeToken(server, '--bucket', server.bucket)
  for (const [method, path] of [
    ['GET', ''],
    ['POST', ''],
    ['DELETE', `/${id}`],
    ['POST', `/${id}/rotate`],
  ] as const)
    await expectProblem(await send(method, path, undefined, authorization), 403, 'scope-missing')
  expect(await statusWith(authorization)).toBe(200)
})

test.each([
  ['no scopes', {}, ['scopes']],
  ['an empty list', { scopes: [] }, ['scopes']],
  ['an unknown scope', { scopes: ['media:read', 'admin'] }, ['scopes']],
  ['another bucket', { scopes: ['media:read'], bucket: 'x' }, ['bucket']],
  ['a long name', { scopes: ['media:read'], name: 'x'.repeat(201) }, ['name']],
  ['a name with a control character', { scopes: ['media:read'], name: 'a\n' }, ['name']],
  ['a name that is no text', { scopes: ['media:read'], name: '\ud800' }, ['name']],
  ['a past time', { scopes: ['media:read'], expires_at: '2020-01-01T00:00:00Z' }, ['expires_at']],
  ['no time, and no name', { scopes: 'x', expires_at: 5, name: 7 }, ['scopes', 'name', 'expires_at']],
])('T6 %s: the request is refused, and names the members', async (_what, body, parameters) => {
  const problem = await expectProblem(await send('POST', '', body), 400, 'json-malformed')
  expect(problem.errors?.map(({ parameter }) => parameter)).toEqual(parameters)
})

test('T7 a revoked token fails on the next request; a repeated revocation has the same response', async () => {
  const { id, authorization } = await create({ scopes: ['media:read'] })
  for (let round = 0; round < 2; round += 1) {
    const response = await send('DELETE', `/${id}`)
    expect([response.status, await response.text()]).toEqual([204, ''])
    expect(await statusWith(authorization)).toBe(401)
  }
  const rotation = await send('POST', `/${id}/rotate`, { expires_at: null })
  await expectProblem(rotation, 409, 'managed-token-inactive')
})

test('A6 the tokens of another bucket are like tokens that never existed', async () => {
  const theirs = await makeManager(uniqueName('other'))
  const ids = [theirs.id, 'tok_000000000000', 'x', '%00']
  for (const id of ids) {
    await expectProblem(await send('DELETE', `/${id}`), 404, 'managed-token-unknown')
    const rotation = await send('POST', `/${id}/rotate`, { expires_at: null })
    await expectProblem(rotation, 404, 'managed-token-unknown')
    await expectProblem(await send('GET', `?after=${id}`), 400, 'cursor-malformed')
  }
  const listed = await list('?limit=500')
  expect(listed.data.filter(({ bucket }) => bucket !== server.bucket)).toEqual([])
  expect((await list('', theirs.authorization)).data).toHaveLength(1)
  expect(await statusWith(theirs.authorization)).toBe(200)
})

test('T8 a token is replaced by one with its name and scopes, and is valid during the overlap', async () => {
  const first = await create({ name: 'app', scopes: ['media:read'], expires_at: inDays(30) })
  const before = new Date().toISOString()
  const expiry = inDays(60)
  const second = await rotate(first.id, { overlap_seconds: 600, expires_at: expiry })
  const { id: _, created_at: _c, expires_at, token: _t, authorization, ...rest } = second
  const unlimited = { note: null, limits: null, uploaded: null, left: null }
  const properties = { name: 'app', bucket: server.bucket, scopes: ['media:read'], ...unlimited }
  expect([rest, expires_at]).toEqual([properties, expiry])
  expect([await statusWith(first.authorization), await statusWith(authorization)]).toEqual([200, 200])
  const replaced = (await list('?limit=500')).data.find(({ id }) => id === first.id)
  expect(Math.abs(millisecondsBetween(before, replaced?.expires_at) - 600_000)).toBeLessThan(60_000)

  const third = await rotate(second.id, { overlap_seconds: 0, expires_at: null })
  expect([third.expires_at, await statusWith(authorization)]).toEqual([null, 401])
  const again = await send('POST', `/${second.id}/rotate`, { expires_at: null })
  await expectProblem(again, 409, 'managed-token-inactive')
})

test('T8 a token replaces itself, by default with an overlap of a day, and has one successor', async () => {
  const own = await makeManager(server.bucket)
  const next = await rotate(own.id, { expires_at: null }, own.authorization)
  expect([next.scopes, next.expires_at]).toEqual([['media:read', 'tokens:manage'], null])
  const replaced = (await list('?limit=500', next.authorization)).data.find(({ id }) => id === own.id)
  expect(millisecondsBetween(next.created_at, replaced?.expires_at)).toBe(86_400_000)
  const again = await send('POST', `/${own.id}/rotate`, { expires_at: null }, own.authorization)
  await expectProblem(again, 409, 'managed-token-inactive')
  // If the response was lost, the list has the successor, which is replaced in turn.
  await rotate(next.id, { expires_at: null }, own.authorization)
})

test.each([
  ['no members', {}, ['expires_at']],
  ['other values', { overlap_seconds: -1, expires_at: 'x' }, ['expires_at', 'overlap_seconds']],
  ['a time after the year 9999', { expires_at: '9999-12-31T23:59:59-23:59' }, ['expires_at']],
])('T8 a body with %s is refused, and names the members', async (_what, body, parameters) => {
  const problem = await expectProblem(
    await send('POST', `/${manager.id}/rotate`, body),
    400,
    'json-malformed',
  )
  expect(problem.errors?.map(({ parameter }) => parameter)).toEqual(parameters)
})

test('T4 tokens are listed oldest first by cursor, with their use and their revocation', async () => {
  const bucket = uniqueName('listed')
  const { authorization, id } = await makeManager(bucket, '--name', 'first')
  const make = async (name: string) =>
    created(await send('POST', '', { name, scopes: ['media:read'] }, authorization))
  const others = [await make('b'), await make('a'), await make('c')]
  await send('DELETE', `/${others[1]?.id}`, undefined, authorization)
  const names: string[] = []
  let after = ''
  for (let pages = 0; pages < 2; pages += 1) {
    const { data, next_cursor } = await list(`?limit=2${after}`, authorization)
    names.push(...data.map(({ name }) => name))
    after = `&after=${next_cursor}`
    expect(next_cursor === null).toBe(pages === 1)
  }
  expect(names).toEqual(['first', 'b', 'a', 'c'])
  const { data } = await list('', authorization)
  expect(data[0]).toEqual({
    ...{ id, name: 'first', bucket, scopes: ['media:read', 'tokens:manage'] },
    ...{ created_at: expect.any(String), expires_at: null, revoked_at: null },
    last_used_at: expect.any(String),
    ...{ note: null, limits: null, uploaded: null, left: null },
  })
  expect([data[1]?.last_used_at, data[2]?.revoked_at]).toEqual([null, expect.any(String)])
  await expectProblem(await send('GET', '?limit=0', undefined, authorization), 400, 'parameter-malformed')
})
