import { Type } from 'typebox'
import { Value } from 'typebox/value'
import { beforeAll, expect, test } from 'vitest'
import { expectProblem } from '../harness/problem.ts'
import type { SharedServer } from '../harness/server.ts'
import { sharedServer } from '../harness/shared-server.ts'
import { makeToken } from '../harness/token.ts'
import { uniqueName } from '../harness/unique-name.ts'
import { upload } from '../harness/upload.ts'

const TextOrNull = Type.Union([Type.String(), Type.Null()])
const CountOrNull = Type.Union([Type.Integer(), Type.Null()])
const closed = { additionalProperties: false }
const Numbered = Type.Object(
  {
    data: Type.Array(Type.Object({ id: Type.String(), url: Type.String() })),
    links: Type.Object(
      {
        first: Type.String(),
        last: TextOrNull,
        prev: TextOrNull,
        next: TextOrNull,
      },
      closed,
    ),
    meta: Type.Object(
      {
        current_page: Type.Integer(),
        from: CountOrNull,
        last_page: CountOrNull,
        path: Type.String(),
        per_page: Type.Integer(),
        to: CountOrNull,
        total: CountOrNull,
      },
      closed,
    ),
  },
  closed,
)

let server: SharedServer
let authorization: string
const ids: string[] = []
beforeAll(async () => {
  server = await sharedServer()
  authorization = (await makeToken(server, '--bucket', uniqueName('numbered'))).authorization
  const stored: { id: string }[] = []
  for (let index = 0; index < 10; index += 1)
    stored.push(await upload(server, `${index}`, { name: `${index}.txt`, authorization }))
  for (const index of [3, 7]) await get(`/api/media/${stored[index]?.id}`, { method: 'DELETE' })
  ids.push(...stored.filter((_, index) => index !== 3 && index !== 7).map(({ id }) => id))
})

const get = (path: string, init: RequestInit = {}) =>
  server.request(path, { ...init, headers: { authorization, ...init.headers } })
const parametersOf = (url: string | null) => Object.fromEntries(new URL(url ?? '').searchParams)
const list = async (query: string) => {
  const response = await get(`/api/items?${query}`)
  expect(response.status).toBe(200)
  const page = Value.Parse(Numbered, await response.json())
  return { ...page, ids: page.data.map(({ id }) => id), etag: response.headers.get('etag') ?? '' }
}

test('K18 a numbered page has its items in both orders, and the links and numbers of Laravel', async () => {
  const path = `${server.url}/api/items`
  const second = await list('order=oldest&page=2&per_page=3')
  expect(second.ids).toEqual(ids.slice(3, 6))
  expect(second.links).toEqual({
    first: expect.stringContaining('page=1'),
    last: expect.stringContaining('page=3'),
    prev: expect.stringContaining('page=1'),
    next: expect.stringContaining('page=3'),
  })
  expect(parametersOf(second.links.next)).toEqual({ order: 'oldest', page: '3', per_page: '3' })
  expect(second.meta).toEqual({ current_page: 2, from: 4, last_page: 3, path, per_page: 3, to: 6, total: 8 })
  for (const order of ['oldest', 'newest']) {
    const all: string[] = []
    for (let next: string | null = `order=${order}&per_page=3`; next !== null; ) {
      const page: Awaited<ReturnType<typeof list>> = await list(next)
      all.push(...page.ids)
      next = page.links.next === null ? null : new URL(page.links.next).search.slice(1)
    }
    expect(all).toEqual(order === 'oldest' ? ids : ids.toReversed())
  }
  const past = await list('page=9&per_page=3')
  expect([past.ids, past.meta.from, past.meta.to, past.meta.total, past.links.next]).toEqual([
    [],
    null,
    null,
    8,
    null,
  ])
  expect(past.links.prev).toContain('page=8')
  expect((await list('page=9007199254740991&per_page=100')).ids).toEqual([])
  const unchanged = await get('/api/items?order=oldest&page=2&per_page=3', {
    headers: { 'if-none-match': second.etag },
  })
  expect([unchanged.status, await unchanged.text()]).toEqual([304, ''])
})

test('K18 with a filter the total is known on the last page, and other parameters are refused', async () => {
  const first = await list('kind=document&per_page=5')
  expect([first.ids, first.meta.total, first.meta.last_page, first.links.last]).toEqual([
    ids.slice(0, 5),
    null,
    null,
    null,
  ])
  expect(new URL(first.links.next ?? '').searchParams.get('kind')).toBe('document')
  const last = await list('kind=document&per_page=5&page=2')
  expect([last.ids, last.meta.total, last.meta.last_page, last.links.next]).toEqual([
    ids.slice(5),
    8,
    2,
    null,
  ])
  expect((await list('name=9.txt&per_page=1')).ids).toEqual(ids.slice(-1))
  for (const query of ['page=0', 'page=x', 'per_page=0', 'per_page=101', 'page=1&limit=5', 'page=1&after=x'])
    await expectProblem(await get(`/api/items?${query}`), 400, 'parameter-malformed')
})

test.each(['kind=image', 'order=name', 'order=taken-desc'])(
  'K18 a page beyond the position 2000 with %s is refused, and the way to go on is named',
  async (query) => {
    const problem = await expectProblem(await get(`/api/items?${query}&page=41`), 400, 'parameter-malformed')
    expect(problem.detail).toBe(
      'With a filter, or an order by name or by time taken, page × per_page is at most 2000. For more, repeat the request without page and per_page, and follow next_cursor.',
    )
  },
)
