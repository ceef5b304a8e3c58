import { expect, test } from 'vitest'
import { createClient } from '../../packages/client/src/index.ts'
import { foreignPage, type ReceivedRequest, sendJson, startForeign } from './foreign-service.ts'

const token = 'never-elsewhere'
const retry = { delay: 1 }
const dialect = { base: 'https://h.example', path: '/api/media', wrapped: false, linkPages: false }
const media = {
  id: 'abc',
  url: 'https://h.example/media/abc',
  filename: null,
  content_type: 'text/plain',
  size: 1,
  sha256: '00',
  created_at: '2026-11-21T10:00:00.000Z',
  width: null,
  height: null,
}

const holdsToken = (requests: readonly ReceivedRequest[]) => JSON.stringify(requests).includes(token)

/** A service at another origin that accepts every request. */
const startRelocatedServer = () =>
  startForeign(({ path }, response) => {
    if (path.startsWith('/api/media/')) return sendJson(response, media)
    if (path.startsWith('/api')) return sendJson(response, foreignPage([], 1, dialect))
    response.end('bytes from elsewhere')
  })

/** A service that redirects everything to the same path at another base. */
const startRedirecting = (base: () => string, status: number) =>
  startForeign(({ path }, response) => {
    response.writeHead(status, { location: `${base()}${path}` }).end('moved')
  })

test.each([301, 302, 303, 307, 308])(
  '%d to another origin: no call goes there, nor does the token',
  async (status) => {
    await using elsewhere = await startRelocatedServer()
    await using service = await startRedirecting(() => elsewhere.url, status)
    const client = createClient({ url: service.url, token, retry })
    const calls = [
      client.listPage(1),
      client.describe('abc'),
      client.delete('abc'),
      client.upload(new Blob(['x'])),
      client.media().next(),
    ]
    for (const call of await Promise.allSettled(calls)) {
      expect(call).toMatchObject({ status: 'rejected', reason: { name: 'RedirectError' } })
    }
    expect(elsewhere.requests).toEqual([])
    expect(service.requests).toHaveLength(calls.length)
  },
)

test('the error for a redirect names its target', async () => {
  await using elsewhere = await startRelocatedServer()
  await using service = await startRedirecting(() => elsewhere.url, 302)
  const client = createClient({ url: service.url, token, retry })
  await expect(client.listPage(2)).rejects.toMatchObject({
    url: `${service.url}/api/media?page=2`,
    location: `${elsewhere.url}/api/media?page=2`,
    message: expect.stringContaining(elsewhere.url),
  })
})

test.each([301, 302, 303, 307, 308])(
  '%d of bytes to another origin is followed without the token',
  async (status) => {
    await using elsewhere = await startRelocatedServer()
    await using service = await startRedirecting(() => elsewhere.url, status)
    const client = createClient({ url: service.url, token, retry })
    for (const reference of ['abc', `${service.url}/media/abc.jpg`]) {
      expect(await (await client.get(reference)).text()).toBe('bytes from elsewhere')
    }
    expect(elsewhere.requests.map(({ path }) => path)).toEqual(['/media/abc', '/media/abc.jpg'])
    expect(holdsToken(elsewhere.requests)).toBe(false)
    expect(service.requests.map(({ headers }) => headers.authorization)).toEqual(
      Array(2).fill(`Bearer ${token}`),
    )
  },
)

test.each<[string, typeof fetch]>([
  ['of the platform', fetch],
  ['that never follows', (input, init) => fetch(input, { ...init, redirect: 'manual' })],
])('once it was elsewhere, a request does not get the token back: fetch %s', async (_name, fetch) => {
  await using service = await startForeign(({ path }, response) => {
    if (path === '/media/home') response.end('home')
    else response.writeHead(302, { location: `${elsewhere.url}/back` }).end()
  })
  await using elsewhere = await startForeign((_request, response) => {
    response.writeHead(302, { location: `${service.url}/media/home` }).end()
  })
  const client = createClient({ url: service.url, token, retry, fetch })
  expect(await (await client.get('abc')).text()).toBe('home')
  expect(service.requests.map(({ headers }) => headers.authorization)).toEqual([`Bearer ${token}`, undefined])
  expect(holdsToken(elsewhere.requests)).toBe(false)
})

test('bytes at a URL of another origin are fetched without the token', async () => {
  await using elsewhere = await startRelocatedServer()
  const client = createClient({ url: 'http://127.0.0.1:9', token, retry })
  const response = await client.get(`${elsewhere.url}/media/abc.jpg?signature=1`)
  expect(await response.text()).toBe('bytes from elsewhere')
  expect(response.url).toBe(`${elsewhere.url}/media/abc.jpg?signature=1`)
  expect(elsewhere.requests.map(({ path }) => path)).toEqual(['/media/abc.jpg?signature=1'])
  expect(holdsToken(elsewhere.requests)).toBe(false)
})

test('describe and delete use only the id of a URL of another origin', async () => {
  await using elsewhere = await startRelocatedServer()
  await using service = await startForeign((_request, response) => sendJson(response, media))
  const client = createClient({ url: service.url, token, retry })
  const reference = `${elsewhere.url}/box/media/abc.jpg`
  expect(await client.describe(reference)).toEqual(media)
  await client.delete(reference)
  expect(elsewhere.requests).toEqual([])
  expect(service.requests.map(({ method, path }) => `${method} ${path}`)).toEqual([
    'GET /api/media/abc',
    'DELETE /api/media/abc',
  ])
})

test('a URL with another scheme or port is of another origin', async () => {
  await using service = await startRedirecting(() => 'https://127.0.0.1', 301)
  const client = createClient({ url: service.url, token, retry })
  await expect(client.listPage(1)).rejects.toThrow('redirects to https://127.0.0.1')
})

test.each([
  'file:///etc/passwd',
  'ftp://h.example/',
  'http://me:pw@127.0.0.1/',
  'data:text/plain,x',
  'http://[',
])('not followed: %s', async (location) => {
  await using service = await startForeign((_request, response) =>
    response.writeHead(302, { location }).end(),
  )
  const client = createClient({ url: service.url, token, retry })
  await expect(client.get('abc')).rejects.toMatchObject({ name: 'RedirectError' })
})

test('redirects within the origin are followed with the token', async () => {
  await using service = await startForeign(({ path }, response) => {
    const url = new URL(path, 'http://x')
    if (url.pathname === '/api/media/') return sendJson(response, foreignPage([], 1, dialect))
    response.writeHead(301, { location: `${url.pathname}/${url.search}` }).end()
  })
  const client = createClient({ url: service.url, token, retry })
  expect((await client.listPage(7)).total).toBe(0)
  expect(service.requests.map(({ path, headers }) => `${path} ${headers.authorization}`)).toEqual([
    `/api/media?page=7 Bearer ${token}`,
    `/api/media/?page=7 Bearer ${token}`,
  ])
})

test('an upload follows 307 and 308 within the origin with its body and headers', async () => {
  await using service = await startForeign(({ path }, response) => {
    if (path === '/new') return sendJson(response, media, 201)
    response.writeHead(308, { location: '/new' }).end()
  })
  const client = createClient({ url: service.url, token, retry })
  expect(await client.upload(new File(['abc'], 'a.txt', { type: 'text/plain' }))).toEqual(media)
  const [first, second] = service.requests
  expect(second).toMatchObject({ method: 'POST', path: '/new', body: 'abc' })
  expect(second?.headers['idempotency-key']).toBe(first?.headers['idempotency-key'])
  expect(second?.headers['content-disposition']).toBe('attachment; filename="a.txt"')
})

test('a consumed stream is not sent again after a redirect', async () => {
  await using service = await startRedirecting(() => '', 307)
  const client = createClient({ url: service.url, token, retry })
  await expect(client.upload(new Blob(['abc']).stream())).rejects.toThrow('stream cannot be sent again')
})

test('a cycle of redirects ends with an error', async () => {
  await using service = await startRedirecting(() => '', 302)
  const client = createClient({ url: service.url, token, retry })
  await expect(client.listPage(1)).rejects.toThrow('redirects more than 5 times')
  expect(service.requests).toHaveLength(6)
})

test('a redirect without Location is an ordinary response', async () => {
  await using service = await startForeign((_request, response) => response.writeHead(302).end())
  const client = createClient({ url: service.url, token, retry })
  await expect(client.listPage(1)).rejects.toMatchObject({ name: 'AnswerError', status: 302 })
})

test('where the platform hides redirects, the error states it', async () => {
  const opaque = Object.defineProperty(Response.error(), 'type', { value: 'opaqueredirect' })
  const client = createClient({ url: 'https://h.example', token, fetch: async () => opaque })
  await expect(client.listPage(1)).rejects.toMatchObject({ name: 'RedirectError', location: null })
})
