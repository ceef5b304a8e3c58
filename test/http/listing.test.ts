import { beforeAll, describe, expect, test } from 'vitest'
import { expectProblem } from '../harness/problem.ts'
import { sendRaw } from '../harness/raw-http.ts'
import { seed } from '../harness/seed.ts'
import type { SharedServer } from '../harness/server.ts'
import { sharedServer } from '../harness/shared-server.ts'
import { makeToken } from '../harness/token.ts'
import { uniqueName } from '../harness/unique-name.ts'
import { readPage, readStoredItems } from '../harness/wire.ts'

let server: SharedServer
beforeAll(async () => {
  server = await sharedServer()
})

/** A new bucket and a token for it, with `count` small text files; 0, or more than one. */
async function bucketOf(count: number, name: string) {
  const { authorization } = await makeToken(server, '--bucket', uniqueName(name))
  const urls: string[] = []
  if (count > 0) {
    const body = new FormData()
    for (let i = 1; i <= count; i += 1) {
      body.append('file', new File([`${name} ${i}`], `${i}.txt`, { type: 'text/plain' }))
    }
    const stored = await server.request('/api/media', { method: 'POST', body, headers: { authorization } })
    urls.push(...(await readStoredItems(stored)).map(({ url }) => url))
  }
  const list = (query = '', headers = {}) =>
    server.request(`/api/media${query}`, { headers: { authorization, ...headers } })
  return { authorization, urls, list }
}

describe('a bucket of 25 items', () => {
  let bucket: Awaited<ReturnType<typeof bucketOf>>
  beforeAll(async () => {
    bucket = await bucketOf(25, 'twenty-five')
  })

  test('L2, L3, L4, L5, L6, L7, L8 the second page is exactly the documented page object', async () => {
    const response = await bucket.list('?page=2')
    expect(response.status).toBe(200)
    expect(response.headers.get('content-type')).toBe('application/json; charset=utf-8')
    const at = (page: number) => `${server.url}/api/media?page=${page}`
    const page = {
      current_page: 2,
      data: bucket.urls.slice(10, 20),
      first_page_url: at(1),
      from: 11,
      last_page: 3,
      last_page_url: at(3),
      links: [
        { url: at(1), label: '&laquo; Previous', active: false },
        { url: at(1), label: '1', active: false },
        { url: at(2), label: '2', active: true },
        { url: at(3), label: '3', active: false },
        { url: at(3), label: 'Next &raquo;', active: false },
      ],
      next_page_url: at(3),
      path: `${server.url}/api/media`,
      per_page: 10,
      prev_page_url: at(1),
      to: 20,
      total: 25,
    }
    expect(await response.text()).toBe(JSON.stringify(page))
  })

  test('L10 pages have the items in the order of upload, each once', async () => {
    const pages = await Promise.all(
      [1, 2, 3].map(async (page) => readPage(await bucket.list(`?page=${page}`))),
    )
    expect(pages.flatMap(({ data }) => data)).toEqual(bucket.urls)
  })

  test('L11 without `page` the response is page 1', async () => {
    expect(await (await bucket.list()).text()).toBe(await (await bucket.list('?page=1')).text())
  })

  test.each(['0', '-1', 'abc', '1.5', '02', '1e3', '', '%201', '+1', '9007199254740992', '１'])(
    'L11, P1 page=%s gets a problem that names the parameter',
    async (page) => {
      const problem = await expectProblem(await bucket.list(`?page=${page}`), 400, 'page-malformed')
      expect(problem.errors).toEqual([
        {
          parameter: 'page',
          detail: expect.stringContaining('9007199254740991'),
          ...{ minimum: 1, maximum: Number.MAX_SAFE_INTEGER },
        },
      ])
    },
  )

  test.each(['?page=1&page=1', '?page=1&page=2', '?page=&page=1'])(
    'L11 a repeated page gets a problem: %s',
    async (query) => {
      await expectProblem(await bucket.list(query), 400, 'page-malformed')
    },
  )

  test.each([4, 1000, Number.MAX_SAFE_INTEGER])('L12 page %d, past the end, is empty', async (number) => {
    const page = await readPage(await bucket.list(`?page=${number}`))
    expect(page).toMatchObject({
      current_page: number,
      data: [],
      from: null,
      to: null,
      next_page_url: null,
      last_page: 3,
    })
    expect(page.prev_page_url).toBe(`${server.url}/api/media?page=${number - 1}`)
    expect(page.links.filter(({ active }) => active)).toEqual([])
  })

  test('L13 unknown parameters are ignored and not echoed', async () => {
    const response = await bucket.list('?page=2&per_page=50&sort=size&__proto__=1&constructor=x&page[]=9')
    expect(await response.text()).toBe(await (await bucket.list('?page=2')).text())
  })

  test('L1 all four paths have the same responses to GET and HEAD', async () => {
    const { authorization } = bucket
    const bodies = await Promise.all(
      ['/api/media', '/api/media/', '/v1/media', '/v1/media/'].map(async (path) => {
        const get = await server.request(`${path}?page=2`, { headers: { authorization } })
        const head = await server.request(`${path}?page=2`, { method: 'HEAD', headers: { authorization } })
        const body = await get.text()
        expect(head.status).toBe(200)
        expect(await head.text()).toBe('')
        for (const name of ['content-length', 'content-type', 'etag', 'vary', 'cache-control']) {
          expect(head.headers.get(name)).toBe(get.headers.get(name))
        }
        return body
      }),
    )
    expect(new Set(bodies).size).toBe(1)
  })

  test('L17 pages are private and revalidated', async () => {
    const { headers } = await bucket.list()
    expect(headers.get('cache-control')).toBe('private, no-cache')
    expect(headers.get('vary')).toMatch(/\bAuthorization\b.*\bAccept-Encoding\b/)
  })

  test('L16 a request with a matching If-None-Match gets a 304', async () => {
    const tag = (await bucket.list('?page=2')).headers.get('etag') ?? ''
    expect(tag).toMatch(/^"[^"]+"$/)
    for (const match of [tag, `W/${tag}`, `"other", ${tag}`, '*']) {
      const response = await bucket.list('?page=2', { 'if-none-match': match })
      expect([match, response.status, await response.text()]).toEqual([match, 304, ''])
      expect(response.headers.get('etag')).toBe(tag)
      expect(response.headers.get('cache-control')).toBe('private, no-cache')
      expect(response.headers.get('vary')).toContain('Authorization')
    }
    expect((await bucket.list('?page=2', { 'if-none-match': '"other"' })).status).toBe(200)
    expect((await bucket.list('?page=1', { 'if-none-match': tag })).status).toBe(200)
  })

  test.each(['evil.example', 'evil.example:80'])(
    'L18 Host and forwarding headers change no URL: %s',
    async (host) => {
      const raw = `GET /api/media HTTP/1.1\r\nHost: ${host}\r\nX-Forwarded-Host: ${host}\r\nX-Forwarded-Proto: https\r\nForwarded: host=${host};proto=https\r\nAuthorization: ${bucket.authorization}\r\nConnection: close\r\n\r\n`
      const response = await sendRaw(server.url, raw)
      expect(response.status).toBe(200)
      expect(response.body).not.toContain('evil')
      expect(response.body).toContain(`"path":"${server.url}/api/media"`)
    },
  )
})

test('L4, L5, L6, L7 an empty bucket has one empty page', async () => {
  const bucket = await bucketOf(0, 'empty')
  const first = `${server.url}/api/media?page=1`
  expect(await (await bucket.list()).json()).toEqual({
    current_page: 1,
    data: [],
    first_page_url: first,
    from: null,
    last_page: 1,
    last_page_url: first,
    links: [
      { url: null, label: '&laquo; Previous', active: false },
      { url: first, label: '1', active: true },
      { url: null, label: 'Next &raquo;', active: false },
    ],
    next_page_url: null,
    path: `${server.url}/api/media`,
    per_page: 10,
    prev_page_url: null,
    to: null,
    total: 0,
  })
})

test('L16 the ETag changes with every upload and delete, and is never reused', async () => {
  const bucket = await bucketOf(3, 'changing')
  const { authorization } = bucket
  const tagNow = async () => (await bucket.list()).headers.get('etag')
  const seen = new Set([await tagNow()])
  for (const url of bucket.urls) {
    const id = new URL(url).pathname.split('/').at(-1)?.split('.')[0]
    await server.request(`/api/media/${id}`, { method: 'DELETE', headers: { authorization } })
    seen.add(await tagNow())
  }
  await server.request('/api/media', { method: 'POST', body: 'x', headers: { authorization } })
  seen.add(await tagNow())
  expect(seen.size).toBe(5)
})

test('L16, A6 the ETag of one bucket does not match in another', async () => {
  const [one, two] = [await bucketOf(0, 'tag-one'), await bucketOf(0, 'tag-two')]
  const tag = (await one.list()).headers.get('etag') ?? ''
  expect((await two.list('', { 'if-none-match': tag })).status).toBe(200)
})

test('L7 every page has a link, at any size of the bucket', async () => {
  const seeded = await seed(
    server,
    '--items',
    '10000',
    '--bucket',
    uniqueName('large'),
    '--delete-every',
    '7',
  )
  const response = await server.request('/api/media?page=500', {
    headers: { authorization: `Bearer ${seeded.token}` },
  })
  const page = await readPage(response)
  expect(seeded.total).toBe(10_000 - Math.floor(10_000 / 7))
  expect(page.total).toBe(seeded.total)
  expect(page.links.length).toBe(Math.ceil(seeded.total / 10) + 2)
  expect(page.links.filter(({ active }) => active)).toEqual([
    { url: `${server.url}/api/media?page=500`, label: '500', active: true },
  ])
})
