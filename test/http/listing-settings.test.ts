import { expect, test } from 'vitest'
import { expectProblem } from '../harness/problem.ts'
import { seed } from '../harness/seed.ts'
import { startServer } from '../harness/server.ts'
import { readItem, readPage, readStoredItems, readWrappedPage } from '../harness/wire.ts'

test('L15 the wrapped envelope contains the page on all four paths', async () => {
  await using server = await startServer({ MEDIABUCKET_ENVELOPE: 'wrapped' })
  for (const path of ['/api/media', '/api/media/', '/v1/media', '/v1/media/']) {
    expect(await readWrappedPage(await server.request(path))).toMatchObject({ current_page: 1, data: [] })
  }
})

test('L16, K7 a list keeps its entity tag where a server has other settings that it does not depend on', async () => {
  const settings = { MEDIABUCKET_BASE_URL: 'https://media.example.org' }
  const paths = ['/api/media', '/api/items']
  await using first = await startServer(settings)
  const tags = await Promise.all(paths.map(async (path) => (await first.request(path)).headers.get('etag')))
  await first.stop()
  const others = {
    MEDIABUCKET_CACHE: '1MB',
    MEDIABUCKET_TOKEN_RATE: '100/1s',
    MEDIABUCKET_MEDIA_MAX_AGE: '1h',
  }
  await using second = await startServer({ ...settings, ...others }, first.data)
  for (const [index, path] of paths.entries()) {
    const headers = { authorization: `Bearer ${first.token}`, 'if-none-match': tags[index] ?? '' }
    expect((await second.request(path, { headers })).status, path).toBe(304)
  }
})

test('L14 with extensions off URLs have none, and items are served with and without', async () => {
  await using server = await startServer({ MEDIABUCKET_EXTENSIONS: 'off' })
  const form = new FormData()
  form.append('file', new File(['a,b'], 'a.csv', { type: 'text/csv' }))
  const { url, id } = await readItem(await server.request('/api/media', { method: 'POST', body: form }))
  expect(url).toBe(`${server.url}/media/${id}`)
  expect((await readPage(await server.request('/api/media'))).data).toEqual([url])
  expect(await (await fetch(url)).text()).toBe('a,b')
  expect(await (await fetch(`${url}.csv`)).text()).toBe('a,b')
})

test('L14 with extensions on, a URL has an extension only where the type is known', async () => {
  await using server = await startServer()
  const form = new FormData()
  form.append('file', new File(['a,b'], 'a.CSV', { type: 'text/csv' }))
  form.append('file', new File(['?'], 'a.unknown-type', { type: 'application/octet-stream' }))
  const items = await readStoredItems(await server.request('/api/media', { method: 'POST', body: form }))
  expect(items.map(({ url }) => url)).toEqual([
    `${server.url}/media/${items[0]?.id}.csv`,
    `${server.url}/media/${items[1]?.id}`,
  ])
})

test('L9 with MEDIABUCKET_LINKS=window the links are shortened to a window', async () => {
  await using server = await startServer({ MEDIABUCKET_LINKS: 'window' })
  const { token } = await seed(server, '--items', '200', '--bucket', 'default')
  const authorization = `Bearer ${token}`
  const page = await readPage(await server.request('/api/media?page=10', { headers: { authorization } }))
  const labels = page.links.map(({ label }) => label)
  expect(labels.slice(1, -1).join(' ')).toBe('1 2 ... 7 8 9 10 11 12 13 ... 19 20')
  expect(page.links[3]).toEqual({ url: null, label: '...', active: false })
})

test('L18 every URL begins with the configured base URL', async () => {
  const base = 'https://media.example.org/box'
  await using server = await startServer({ MEDIABUCKET_BASE_URL: `${base}/` })
  const uploaded = await server.request('/api/media', { method: 'POST', body: Buffer.from('x') })
  const { url, id } = await readItem(uploaded)
  expect(url).toBe(`${base}/media/${id}`)
  expect(uploaded.headers.get('location')).toBe(`${base}/api/media/${id}`)
  const page = await readPage(await server.request('/api/media'))
  expect(page).toMatchObject({
    data: [url],
    path: `${base}/api/media`,
    first_page_url: `${base}/api/media?page=1`,
  })
  const problem = await expectProblem(await fetch(`${server.url}/nowhere`), 404, 'route-unknown')
  expect(problem.type).toBe(`${base}/problems/route-unknown`)
})
