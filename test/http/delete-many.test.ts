import { beforeAll, expect, test } from 'vitest'
import { expectProblem } from '../harness/problem.ts'
import { countStored } from '../harness/resources.ts'
import type { SharedServer } from '../harness/server.ts'
import { sharedServer } from '../harness/shared-server.ts'
import { makeToken } from '../harness/token.ts'
import { uniqueName } from '../harness/unique-name.ts'
import { until } from '../harness/until.ts'
import { upload } from '../harness/upload.ts'
import { readDeleted, readPage, readStoredItems } from '../harness/wire.ts'

let server: SharedServer
let stranger: string
beforeAll(async () => {
  server = await sharedServer()
  stranger = (await makeToken(server, '--bucket', uniqueName('other'))).authorization
})

const send = (body: NonNullable<RequestInit['body']>, headers: Record<string, string> = {}) =>
  server.request('/api/media', {
    method: 'DELETE',
    body,
    duplex: 'half',
    headers: { 'content-type': 'application/json', ...headers },
  })

const removeMany = async (ids: readonly string[]) => {
  const response = await send(JSON.stringify({ ids }))
  expect([response.status, response.headers.get('cache-control')]).toEqual([200, 'no-store'])
  return await readDeleted(response)
}

const listPage = async (headers: Record<string, string> = {}) => {
  const response = await server.request('/api/media', { headers })
  return { etag: response.headers.get('etag'), page: await readPage(response) }
}

test('M4 many items are deleted with their bytes, and the ids that the bucket does not have are missing', async () => {
  const before = await countStored(server)
  const mine = await Promise.all(['one', 'two', 'x'.repeat(100_000)].map((bytes) => upload(server, bytes)))
  const kept = await upload(server, 'kept')
  const theirs = await upload(server, 'theirs', { authorization: stranger })
  const ids = mine.map(({ id }) => id).toReversed()
  const missing = ['0'.repeat(26), theirs.id, '../../catalog.db', '', `${kept.id}.txt`]
  const asked = [...missing.slice(0, 2), ...ids, ...missing.slice(2), ...ids]

  expect(await removeMany(asked)).toEqual({ deleted: ids, missing })
  for (const { url } of mine) await expectProblem(await fetch(url), 404, 'media-unknown')
  const { page } = await listPage()
  expect([page.total, page.data.at(-1)]).toEqual([before.total + 1, kept.url])
  expect((await fetch(theirs.url)).status).toBe(200)
  await until('their bytes are gone', async () => (await countStored(server)).blobs === before.blobs + 2)

  const { etag } = await listPage()
  expect(await removeMany(ids)).toEqual({ deleted: [], missing: ids })
  expect((await listPage()).etag).toBe(etag)
  expect(await removeMany([kept.id])).toEqual({ deleted: [kept.id], missing: [] })
  expect((await listPage()).etag).not.toBe(etag)
})

test('M4 500 items are deleted by one request, and of concurrent requests one deletes an item', async () => {
  const { authorization } = await makeToken(server, '--bucket', uniqueName('crowd'))
  const form = new FormData()
  for (let index = 0; index < 500; index++) form.append('file', new File([`${index}`], `${index}.txt`))
  const stored = await server.request('/api/media', {
    method: 'POST',
    body: form,
    headers: { authorization },
  })
  const ids = (await readStoredItems(stored)).map(({ id }) => id)
  const results = await Promise.all(
    [ids, ids.toReversed(), ids].map(async (some) =>
      readDeleted(await send(JSON.stringify({ ids: some }), { authorization })),
    ),
  )
  const deleted = results.flatMap((result) => result.deleted)
  expect([deleted.length, new Set(deleted)]).toEqual([500, new Set(ids)])
  expect(results.flatMap(({ missing }) => missing)).toHaveLength(1000)
  expect((await listPage({ authorization })).page.total).toBe(0)
})

const accepted = 'An array of 1 to 500 ids, which are strings.'
test.each([
  ['no member', '{}', [['ids', accepted]]],
  ['no ids', '{"ids":[]}', [['ids', accepted]]],
  ['501 ids', JSON.stringify({ ids: Array(501).fill('x') }), [['ids', accepted]]],
  ['a number as id', '{"ids":["x",1]}', [['ids', accepted]]],
  ['text instead of ids', '{"ids":"x"}', [['ids', accepted]]],
  [
    'unknown members',
    '{"ids":["x"],"all":true,"__proto__":1}',
    ['all', '__proto__'].map((name) => [
      name,
      'The object has no such member; its members are ids, replaced_by.',
    ]),
  ],
  ['an array', '["x"]', []],
  ['null', 'null', []],
  ['no JSON', '{"ids":["x"]', []],
  ['nothing', '', []],
  ['no UTF-8', Buffer.from('{"ids":["\xff"]}', 'latin1'), []],
])('M4 a body with %s gets a 400 problem that names what is wrong', async (_name, body, errors) => {
  const problem = await expectProblem(await send(body), 400, 'json-malformed')
  expect((problem.errors ?? []).map(({ parameter, detail }) => [parameter, detail])).toEqual(errors)
})

test('M4 a body that is too large, of another type or encoded is refused', async () => {
  const body = JSON.stringify({ ids: ['x'.repeat(131_072)] })
  await expectProblem(await send(body), 413, 'body-too-large')
  await expectProblem(await send(new Blob([body]).stream()), 413, 'body-too-large')
  for (const type of ['text/plain', 'application/x-www-form-urlencoded'])
    await expectProblem(
      await send('{"ids":["x"]}', { 'content-type': type }),
      415,
      'content-type-unsupported',
    )
  const untyped = await server.request('/api/media', { method: 'DELETE', body: Buffer.from('{}') })
  await expectProblem(untyped, 415, 'content-type-unsupported')
  const coded = await send('{"ids":["x"]}', { 'content-encoding': 'gzip' })
  await expectProblem(coded, 415, 'content-coding-unsupported')
  const typed = await send('{"ids":["x"]}', { 'content-type': 'Application/JSON; charset=utf-8' })
  expect(typed.status).toBe(200)
})

test('A3 deleting many items requires media:delete', async () => {
  const { id } = await upload(server, 'kept')
  const { authorization } = await makeToken(
    server,
    ...['--bucket', server.bucket, '--scope', 'media:read', '--scope', 'media:write'],
  )
  const refused = await send(JSON.stringify({ ids: [id] }), { authorization })
  await expectProblem(refused, 403, 'scope-missing')
  expect(refused.headers.get('www-authenticate')).toContain('scope="media:delete"')
  expect((await server.request(`/api/media/${id}`)).status).toBe(200)
})

test('M4, OK10 replaced_by names some of the ids and needs media:write', async () => {
  const one = await upload(server, 'one')
  const other = await upload(server, 'other')
  for (const replaced_by of [null, [], 'x', { [other.id]: one.id }, { [one.id]: 1 }, { [one.id]: null }])
    expect(
      await expectProblem(await send(JSON.stringify({ ids: [one.id], replaced_by })), 400, 'json-malformed'),
    ).toMatchObject({ errors: [{ parameter: 'replaced_by' }] })
  const body = JSON.stringify({ ids: [one.id], replaced_by: { [one.id]: 'no id' } })
  const { authorization } = await makeToken(server, '--bucket', server.bucket, '--scope', 'media:delete')
  await expectProblem(await send(body, { authorization }), 403, 'scope-missing')
  // T9: with limits, media:write permits uploads only.
  const limited = await makeToken(
    server,
    ...['--bucket', server.bucket, '--scope', 'media:write', '--scope', 'media:delete', '--max-items', '9'],
  )
  const { authorization: withLimits } = limited
  await expectProblem(await send(body, { authorization: withLimits }), 403, 'scope-missing')
  expect(await readDeleted(await send(body))).toEqual({ deleted: [one.id], missing: [] })
})
