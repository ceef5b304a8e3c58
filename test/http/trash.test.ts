import { beforeAll, expect, test } from 'vitest'
import { runHere } from '../harness/commands.ts'
import { expectProblem } from '../harness/problem.ts'
import type { SharedServer } from '../harness/server.ts'
import { sharedServer } from '../harness/shared-server.ts'
import { makeToken } from '../harness/token.ts'
import { uniqueName } from '../harness/unique-name.ts'
import { upload } from '../harness/upload.ts'
import { readDeleted, readItem, readItems, readPage, readRestored, readTrash } from '../harness/wire.ts'

let server: SharedServer
beforeAll(async () => {
  server = await sharedServer()
})

/** A new bucket with a trash, and requests with a token for it. */
async function bucketWithTrash(...settings: string[]) {
  const bucket = uniqueName('trash')
  const { authorization } = await makeToken(server, '--bucket', bucket)
  await runHere(server.data, 'bucket set', bucket, '--trash-days', '30', ...settings)
  const request = (path: string, init: RequestInit = {}) =>
    server.request(path, { ...init, headers: { authorization, ...init.headers } })
  const send = (method: string, path: string, body: object) =>
    request(path, { method, body: JSON.stringify(body), headers: { 'content-type': 'application/json' } })
  return {
    bucket,
    request,
    send,
    upload: (text: string) => upload(server, text, { authorization }),
    remove: async (...ids: string[]) => readDeleted(await send('DELETE', '/api/media', { ids })),
    restore: async (...ids: string[]) => readRestored(await send('POST', '/api/trash/restore', { ids })),
    trash: async (query = '') => readTrash(await request(`/api/trash${query}`)),
    page: async () => readPage(await request('/api/media')),
    describe: async (): Promise<unknown> => (await request('/api/bucket')).json(),
  }
}

test('Z1, Z2, Z3 a deleted item is like a deleted one until it is restored with its URL, place and texts', async () => {
  const bucket = await bucketWithTrash()
  const texts = ['one', 'x'.repeat(100_000), 'three', 'four']
  const items: Awaited<ReturnType<typeof upload>>[] = []
  for (const text of texts) items.push(await bucket.upload(text))
  const [one, two, three] = items
  if (!one || !two || !three) throw new Error('no items')
  const edited = await readItem(
    await bucket.send('PATCH', `/api/media/${two.id}`, { filename: 'Two.txt', caption: 'x' }),
  )
  const before = await bucket.page()
  const listed = await readItems(await bucket.request('/api/items'))
  // The bytes are in memory.
  for (let round = 0; round < 3; round++) expect((await fetch(one.url)).status).toBe(200)

  const named = async () =>
    (await readItems(await bucket.request('/api/items?name=Two'))).data.map(({ id }) => id)
  expect(await named()).toEqual([two.id])
  const beforeDelete = Date.now()
  expect((await bucket.request(`/api/media/${one.id}`, { method: 'DELETE' })).status).toBe(204)
  expect(await bucket.remove(two.id, one.id)).toEqual({ deleted: [two.id], missing: [one.id] })
  for (const { id, url } of [one, two]) {
    for (let round = 0; round < 2; round++) await expectProblem(await fetch(url), 404, 'media-unknown')
    await expectProblem(await fetch(`${url}?variant=thumb`), 404, 'media-unknown')
    await expectProblem(await bucket.request(`/api/media/${id}`), 404, 'media-unknown')
    await expectProblem(
      await bucket.send('PATCH', `/api/media/${id}`, { caption: 'y' }),
      404,
      'media-unknown',
    )
    await expectProblem(await bucket.request(`/api/media/${id}`, { method: 'DELETE' }), 404, 'media-unknown')
  }
  expect(await named()).toEqual([])
  expect(await bucket.page()).toMatchObject({ total: 2, data: before.data.slice(2) })
  expect((await readItems(await bucket.request('/api/items'))).data).toEqual(listed.data.slice(2))
  expect(await bucket.describe()).toMatchObject({
    items: 2,
    bytes: texts.join('').length,
    trash_days: 30,
    trash_items: 2,
    trash_bytes: 100_003,
  })

  const { data, next_cursor } = await bucket.trash('?limit=1')
  const [last] = data
  const days = Date.parse(last?.expires_at ?? '') - Date.parse(last?.deleted_at ?? '')
  expect([data.length, days / (24 * 60 * 60 * 1000)]).toEqual([1, 30])
  expect(last).toEqual({ ...edited, deleted_at: last?.deleted_at, expires_at: last?.expires_at })
  expect(Date.parse(last?.deleted_at ?? '')).toBeGreaterThanOrEqual(beforeDelete)
  const rest = await bucket.trash(`?after=${next_cursor}`)
  expect([rest.data.map(({ id }) => id), rest.next_cursor]).toEqual([[one.id], null])

  expect(await bucket.restore(one.id, 'nobody', three.id, two.id, one.id)).toEqual({
    restored: [one.id, two.id],
    missing: ['nobody', three.id],
  })
  expect(await bucket.restore(one.id)).toEqual({ restored: [], missing: [one.id] })
  expect(await bucket.page()).toEqual(before)
  expect((await readItems(await bucket.request('/api/items'))).data).toEqual(listed.data)
  expect(await named()).toEqual([two.id])
  expect(await (await fetch(two.url)).text()).toBe(texts[1])
  expect((await fetch(two.url)).headers.get('content-disposition')).toContain('Two.txt')
  expect(await (await fetch(one.url)).text()).toBe('one')
  expect(await bucket.describe()).toMatchObject({ items: 4, trash_items: 0, trash_bytes: 0 })
})

test('Z4 items of the trash are deleted permanently, by their ids or all', async () => {
  const bucket = await bucketWithTrash()
  const ids: string[] = []
  for (const text of ['a', 'b', 'c', 'kept']) ids.push((await bucket.upload(text)).id)
  const [a = '', b = '', c = '', kept = ''] = ids
  await bucket.remove(a, b, c)
  const purged = await bucket.send('DELETE', '/api/trash', { ids: [b, kept, 'nobody'] })
  expect(await readDeleted(purged)).toEqual({ deleted: [b], missing: [kept, 'nobody'] })
  expect((await bucket.trash()).data.map(({ id }) => id)).toHaveLength(2)
  const emptied = await bucket.send('DELETE', '/api/trash', { all: true })
  expect([emptied.status, await emptied.text()]).toEqual([204, ''])
  expect(await bucket.trash()).toEqual({ data: [], next_cursor: null })
  expect(await bucket.restore(...ids)).toEqual({ restored: [], missing: ids })
  expect(await bucket.page()).toMatchObject({ total: 1 })
  expect(await bucket.describe()).toMatchObject({ items: 1, bytes: 4, trash_items: 0, trash_bytes: 0 })
})

test('Z1, Z3 the trash counts against max_bytes, and a restore against max_items', async () => {
  const bucket = await bucketWithTrash('--max-items', '2', '--max-bytes', '10')
  const [one, two] = [await bucket.upload('1234'), await bucket.upload('5678')]
  await bucket.remove(one.id, two.id)
  const large = await bucket.request('/api/media', { method: 'POST', body: '90a' })
  await expectProblem(large, 507, 'quota-exceeded')
  for (const text of ['9', 'a']) await bucket.upload(text)
  await expectProblem(
    await bucket.send('POST', '/api/trash/restore', { ids: [one.id] }),
    507,
    'quota-exceeded',
  )
  expect((await bucket.trash()).data).toHaveLength(2)
})

test('Z2, Z3, Z4 wrong requests get a problem that names what is wrong, and each requires media:delete', async () => {
  const bucket = await bucketWithTrash()
  for (const query of ['limit=0', 'limit=501', 'after=a&after=b'])
    await expectProblem(await bucket.request(`/api/trash?${query}`), 400, 'parameter-malformed')
  for (const cursor of ['x', '1', 'abc.1'])
    await expectProblem(await bucket.request(`/api/trash?after=${cursor}`), 400, 'cursor-malformed')
  const other = await bucketWithTrash()
  for (const text of ['a', 'b']) await other.remove((await other.upload(text)).id)
  const { next_cursor } = await other.trash('?limit=1')
  await expectProblem(await bucket.request(`/api/trash?after=${next_cursor}`), 400, 'cursor-malformed')
  // K4, K6: with any character changed, it is no cursor.
  const cursor = next_cursor ?? ''
  for (let index = 0; index < cursor.length; index += 1) {
    const changed = cursor.slice(0, index) + (cursor[index] === '7' ? '8' : '7') + cursor.slice(index + 1)
    await expectProblem(await other.request(`/api/trash?after=${changed}`), 400, 'cursor-malformed')
  }
  for (const body of [{}, { all: false }, { all: true, ids: ['x'] }, { ids: [] }, { every: true }])
    await expectProblem(await bucket.send('DELETE', '/api/trash', body), 400, 'json-malformed')
  await expectProblem(await bucket.send('POST', '/api/trash/restore', { all: true }), 400, 'json-malformed')

  const scopes = ['--scope', 'media:read', '--scope', 'media:write']
  const { authorization } = await makeToken(server, '--bucket', bucket.bucket, ...scopes)
  for (const [method, path] of [
    ['GET', '/api/trash'],
    ['DELETE', '/api/trash'],
    ['POST', '/api/trash/restore'],
  ] as const)
    await expectProblem(
      await server.request(path, { method, headers: { authorization } }),
      403,
      'scope-missing',
    )
})
