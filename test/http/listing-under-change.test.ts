import { expect, test } from 'vitest'
import { pageObject } from '../../packages/server/src/core/page.ts'
import { seededRandom } from '../harness/random.ts'
import { seed } from '../harness/seed.ts'
import { startServer, type TestServer } from '../harness/server.ts'
import { readStoredItems } from '../harness/wire.ts'

/** Enough items for the cached chunks of page links. */
const items = 5_600

/** Each form of the page object; the default one with and without the cache. */
const settings: readonly Record<string, string>[] = [
  {},
  { MEDIABUCKET_CACHE: '0' },
  { MEDIABUCKET_LINKS: 'window', MEDIABUCKET_EXTENSIONS: 'off' },
  {
    MEDIABUCKET_CACHE: '0',
    MEDIABUCKET_ENVELOPE: 'wrapped',
    MEDIABUCKET_BASE_URL: 'https://media.example.org/box',
  },
]

const random = seededRandom()

test.each(settings)(
  'L2, L4, L5, L7 while items are added and deleted every response is the exact page of one revision: %j',
  async (setting) => {
    await using server = await startServer(setting)
    const { token, total } = await seed(server, '--items', `${items}`, '--bucket', 'changing')
    const headers = { authorization: `Bearer ${token}` }
    const changing = change(server, headers, 8)
    const pages = Math.ceil(items / 10)
    const totals = new Set<number>()
    let over = false
    void changing.finally(() => {
      over = true
    })
    do {
      const asked = Array.from({ length: 8 }, () => 1 + random(1 + random(pages + 3)))
      for (const seen of await Promise.all(
        asked.map((page) => listPlainly(server, setting, headers, page)),
      )) {
        totals.add(seen)
      }
    } while (!over)
    const grown = await changing
    expect(totals.size).toBeGreaterThan(1)
    expect(await listPlainly(server, setting, headers, 1)).toBe(total + grown)
  },
)

/** Uploads and deletes items for a while; returns by how many items the bucket has grown. */
async function change(server: TestServer, headers: Record<string, string>, rounds: number): Promise<number> {
  let grown = 0
  for (let round = 0; round < rounds; round += 1) {
    const body = new FormData()
    for (let file = 0; file < 3; file += 1)
      body.append('file', new File([`${round} ${file}`], 'a.csv', { type: 'text/csv' }))
    const items = await readStoredItems(await server.request('/api/media', { method: 'POST', body, headers }))
    const gone = items.slice(0, round % 4)
    await Promise.all(gone.map(({ id }) => server.request(`/api/media/${id}`, { method: 'DELETE', headers })))
    grown += items.length - gone.length
  }
  return grown
}

/** Lists a page, renders it from its own values, expects the same bytes, and returns its total. */
async function listPlainly(
  server: TestServer,
  setting: Record<string, string>,
  headers: Record<string, string>,
  page: number,
) {
  const coding = random(2) === 0 ? 'gzip' : 'identity'
  const response = await server.request(`/api/media?page=${page}`, {
    headers: { ...headers, 'accept-encoding': coding },
  })
  const text = await response.text()
  const { total, data, count } = summaryOf(text)
  const form = {
    baseUrl: setting['MEDIABUCKET_BASE_URL'] ?? server.url,
    extensions: setting['MEDIABUCKET_EXTENSIONS'] !== 'off',
    links: setting['MEDIABUCKET_LINKS'] === 'window' ? 'window' : 'all',
  } as const
  const rows = data.map((url) => {
    const [id = '', extension = null] = (url.split('/').at(-1) ?? '').split('.')
    return { id, extension }
  })
  const object = pageObject(form, page, total, rows)
  const expected = JSON.stringify(setting['MEDIABUCKET_ENVELOPE'] === 'wrapped' ? { data: object } : object)
  // Compared as booleans, because a difference of hundreds of kilobytes cannot be printed.
  expect(text === expected).toBe(true)
  expect(data).toHaveLength(count)
  return total
}

/** The total and the URLs of a page, and the number of URLs that a page of this total has. */
function summaryOf(text: string) {
  const total = Number(/"total":(\d+)}/.exec(text)?.[1])
  const page = Number(/"current_page":(\d+)/.exec(text)?.[1])
  const data = [...(/"data":\[([^[\]{}]*)\]/.exec(text)?.[1] ?? '').matchAll(/"([^"]+)"/g)].map(
    ([, url]) => url ?? '',
  )
  return { total, data, count: Math.max(0, Math.min(10, total - (page - 1) * 10)) }
}
