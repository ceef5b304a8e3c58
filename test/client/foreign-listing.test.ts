import { describe, expect, test } from 'vitest'
import { createClient, type Page } from '../../packages/client/src/index.ts'
import { type Dialect, foreignPage, sendJson, startForeign } from './foreign-service.ts'

const token = 'foreign-token'
const retry = { delay: 1 }

const itemsOf = (count: number, extension = '') =>
  Array.from({ length: count }, (_, index) => `https://cdn.example/media/item-${index}${extension}`)

async function collect<T>(from: AsyncIterable<T>): Promise<T[]> {
  const all: T[] = []
  for await (const one of from) all.push(one)
  return all
}

/** A service with only a listing, at one exact path. */
async function serviceOf(items: string[], dialect: Dialect, only = dialect.path) {
  return await startForeign(({ method, path, headers }, response) => {
    const url = new URL(path, 'http://x')
    if (method !== 'GET' || url.pathname !== only) return sendJson(response, { message: 'Not found' }, 404)
    if (headers.authorization !== `Bearer ${token}`)
      return sendJson(response, { message: 'Unauthenticated.' }, 401)
    sendJson(response, foreignPage(items, Number(url.searchParams.get('page') ?? 1), dialect))
  })
}

const dialects: [string, Dialect, string][] = [
  ['bare', { base: 'https://h.example', path: '/api/media', wrapped: false, linkPages: false }, ''],
  ['wrapped', { base: 'https://h.example', path: '/api/media', wrapped: true, linkPages: false }, '.jpg'],
  ['at /v1/media', { base: 'https://h.example', path: '/v1/media', wrapped: true, linkPages: true }, ''],
  [
    'below a prefix',
    { base: 'http://h.example/box', path: '/api/media', wrapped: false, linkPages: true },
    '.png',
  ],
]

describe.each(dialects)('a service whose pages are %s', (_name, dialect, extension) => {
  test('every item is returned once, in order, from the given URL', async () => {
    const items = itemsOf(237, extension)
    const only = `/here${dialect.path}`
    await using service = await serviceOf(items, dialect, only)
    const client = createClient({ url: `${service.url}${only}`, token, retry })
    expect(await collect(client.media())).toEqual(items)
    expect(service.requests.map(({ path }) => path)).toEqual(
      Array.from({ length: 24 }, (_, index) => `${only}?page=${index + 1}`),
    )
  })
})

const bare: Dialect = { base: 'https://h.example', path: '/api/media', wrapped: false, linkPages: false }

test('a trailing slash of the URL is preserved', async () => {
  await using service = await serviceOf(itemsOf(12), bare, '/v1/media/')
  const client = createClient({ url: `${service.url}/v1/media/`, token, retry })
  expect(await collect(client.media())).toHaveLength(12)
})

test('an iteration can start at any page and requests no page after it was ended', async () => {
  await using service = await serviceOf(itemsOf(95), bare)
  const client = createClient({ url: service.url, token, retry })
  const numbers: number[] = []
  for await (const page of client.pages({ from: 3 })) {
    numbers.push(page.current_page)
    if (numbers.length === 2) break
  }
  expect(numbers).toEqual([3, 4])
  expect(service.requests).toHaveLength(2)
})

test('an empty bucket is one empty page; a page past the end is empty', async () => {
  await using service = await serviceOf([], bare)
  const client = createClient({ url: service.url, token, retry })
  const [page, ...others] = await collect(client.pages())
  expect(page).toMatchObject({ data: [], from: null, to: null, total: 0 })
  expect(others).toEqual([])
  expect(await client.listPage(9)).toMatchObject({ current_page: 9, data: [], next_page_url: null })
})

test('each item deleted from an earlier page hides one item, and no item is returned twice', async () => {
  const items = itemsOf(40)
  const all = [...items]
  await using service = await serviceOf(items, bare)
  const client = createClient({ url: service.url, token, retry })
  const met: string[] = []
  for await (const page of client.pages()) {
    met.push(...page.data)
    if (page.current_page === 1) items.splice(0, 3)
  }
  expect(met).toEqual(all.filter((_, index) => index < 10 || index > 12))
})

test('an iteration ends if the remaining pages disappear', async () => {
  const items = itemsOf(40)
  await using service = await serviceOf(items, bare)
  const client = createClient({ url: service.url, token, retry })
  const sizes: number[] = []
  for await (const page of client.pages()) {
    sizes.push(page.data.length)
    items.splice(5)
  }
  expect(sizes).toEqual([10, 0])
})

test('a service whose next pages form a cycle causes an error', async () => {
  await using service = await startForeign((_request, response) => {
    sendJson(response, foreignPage(itemsOf(30), 1, bare))
  })
  const client = createClient({ url: service.url, token, retry })
  await expect(collect(client.pages())).rejects.toMatchObject({ name: 'ShapeError', path: 'next_page_url' })
  expect(service.requests).toHaveLength(2)
})

test.each<[string, unknown, string]>([
  ['wrapped twice', { data: { data: foreignPage([], 1, bare) } }, 'current_page'],
  ['a list', [], ''],
  ['of another kind', { message: 'hello' }, 'current_page'],
])('an response that is %s names what is wrong', async (_name, body, path) => {
  await using service = await startForeign((_request, response) => sendJson(response, body))
  const client = createClient({ url: service.url, token, retry })
  await expect(client.listPage(1)).rejects.toMatchObject({ name: 'ShapeError', path })
  expect(service.requests).toHaveLength(1)
})

test('the error for a malformed fourth link names that link', async () => {
  const page = foreignPage(itemsOf(30), 1, bare) as Page
  const links = page.links.map((link, index) => (index === 3 ? { ...link, url: 3 } : link))
  await using service = await startForeign((_request, response) =>
    sendJson(response, { data: { ...page, links } }),
  )
  const client = createClient({ url: service.url, token, retry })
  await expect(client.listPage(1)).rejects.toMatchObject({ name: 'ShapeError', path: 'links[3].url' })
})

test.each([
  ['text/html', '<h1>Sign in</h1>', 'must be JSON, and is text/html'],
  ['application/json', '', 'must be JSON, and is empty'],
  ['application/json', '{"current_page":1,', 'must be JSON, and is application/json'],
])('a successful response of type %s that is not JSON is an error', async (type, body, message) => {
  await using service = await startForeign((_request, response) => {
    response.writeHead(200, { 'content-type': type }).end(body)
  })
  const client = createClient({ url: service.url, token, retry })
  await expect(client.listPage(1)).rejects.toThrow(message)
})

test('an error response without a problem is an AnswerError with the body', async () => {
  await using service = await serviceOf(itemsOf(3), bare)
  const client = createClient({ url: service.url, token: 'another', retry })
  const error = await client.listPage(1).catch((thrown: unknown) => thrown)
  expect(error).toMatchObject({
    name: 'AnswerError',
    status: 401,
    body: '{"message":"Unauthenticated."}',
    attempts: 1,
  })
  expect(String(error)).toContain('answered 401: {"message":"Unauthenticated."}')
})

test('requests accept only JSON, so that a service does not send its sign-in page', async () => {
  await using service = await serviceOf(itemsOf(3), bare)
  await createClient({ url: service.url, token, retry }).listPage(1)
  expect(service.requests[0]?.headers.accept).toMatch(/^application\/json/)
})
