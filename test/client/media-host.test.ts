import { createServer, request } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createClient } from '../../packages/client/src/index.ts'
import { runClient } from '../cli/client-run.ts'
import { runHere } from '../harness/commands.ts'
import { quarters } from '../harness/pictures.ts'
import { startServer, type TestServer } from '../harness/server.ts'
import { makeToken } from '../harness/token.ts'
import { upload } from '../harness/upload.ts'

/** A request that one of the two hosts received. */
interface Received {
  readonly line: string
  readonly authorization: string | undefined
}

/** Two names of one port, which forwards to the service and keeps Host. */
const received: Received[] = []
const proxy = createServer((incoming, response) => {
  const { method = '', url = '', headers } = incoming
  const host = headers.host?.startsWith('localhost') ? 'media' : 'main'
  received.push({ line: `${host} ${method} ${url}`, authorization: headers.authorization })
  const onward = request(new URL(url, server.url), { method, headers }, (got) => {
    response.writeHead(got.statusCode ?? 502, got.rawHeaders)
    got.pipe(response)
  })
  incoming.pipe(onward)
})

let server: TestServer
let base: string
let item: Awaited<ReturnType<typeof upload>>
beforeAll(async () => {
  await new Promise<void>((resolve) => proxy.listen(0, resolve))
  const { port } = proxy.address() as AddressInfo
  base = `http://127.0.0.1:${port}`
  server = await startServer({
    MEDIABUCKET_BASE_URL: base,
    MEDIABUCKET_MEDIA_BASE_URL: `http://localhost:${port}`,
  })
  item = await upload(server, 'text', { name: 'a.txt' })
})
afterAll(async () => {
  await server?.[Symbol.asyncDispose]()
  proxy.closeAllConnections()
  await new Promise((resolve) => proxy.close(resolve))
})

const client = (token = server.token, fetch?: typeof globalThis.fetch) =>
  createClient({ url: base, token, fetch, retry: { delay: 1 } })
const setPrivate = (value: 'on' | 'off') => runHere(server.data, 'bucket set', 'default', '--private', value)

/** The requests that a call causes, without the query of signed URLs. */
async function requestsOf(call: () => Promise<unknown>): Promise<string[]> {
  received.length = 0
  await call()
  for (const { line, authorization } of received)
    if (line.startsWith('media')) expect(authorization).toBeUndefined()
  return received.map(({ line }) => line.replace(/\?.*signature=.*/, '?signature'))
}

const text = async (reference: string, token?: string) =>
  expect(await (await client(token).get(reference)).text()).toBe('text')

describe('B11 with a media host, which receives no token, the client gets bytes', () => {
  test('of a public bucket by one request for a URL', async () => {
    const { pathname } = new URL(item.url)
    expect(await requestsOf(() => text(item.url))).toEqual([`media GET ${pathname}`])
    expect(await requestsOf(() => text(item.id))).toEqual([
      `main GET /media/${item.id}`,
      `media GET /media/${item.id}`,
    ])
  })

  test('H3 of a private bucket by a signed URL', async () => {
    await setPrivate('on')
    const { pathname } = new URL(item.url)
    const link = [`main POST /api/media/${item.id}/links`, `media GET ${pathname}?signature`]
    expect(await requestsOf(() => text(item.url))).toEqual([`media GET ${pathname}`, ...link])
    expect(await requestsOf(() => text(item.id))).toEqual([
      `main GET /media/${item.id}`,
      `media GET /media/${item.id}`,
      ...link,
    ])
    const saved = await client().get(`${item.url}?download`)
    expect(saved.headers.get('content-disposition')).toBe('attachment; filename=a.txt')
    for (const reference of [item.id, item.url]) {
      const { code, stdout } = await runClient({ url: base, token: server.token }, 'get', reference)
      expect([code, stdout]).toEqual([0, 'text'])
    }
  })

  test('V18, H5 a picture of a private bucket by its width', async () => {
    await setPrivate('on')
    const picture = await upload(server, Uint8Array.from(await quarters(900, 600).png().toBuffer()), {
      name: 'a.png',
      type: 'image/png',
    })
    for (const parameter of ['w=300', 'width=300', 'variant=thumb'])
      for (const url of [`${picture.url}?${parameter}`, `${base}/media/${picture.id}?${parameter}`]) {
        const { headers } = await client().get(url)
        expect([url, headers.get('mediabucket-variant')]).toEqual([url, 'thumb'])
      }
  })

  test('H3 of a private bucket where the platform hides redirects, as browsers do', async () => {
    await setPrivate('on')
    const hiding: typeof globalThis.fetch = async (input, init) => {
      const response = await fetch(input, init)
      return init?.redirect === 'manual' && response.status === 308
        ? Object.defineProperty(Response.error(), 'type', { value: 'opaqueredirect' })
        : response
    }
    expect(await (await client(server.token, hiding).get(item.id)).text()).toBe('text')
  })

  test('H2 or the response of the media host, if the service has no link', async () => {
    await setPrivate('on')
    const unknown = `${new URL(item.url).origin}/media/${'0'.repeat(item.id.length)}.txt`
    const { token: other } = await makeToken(server, '--bucket', 'other')
    const { token: writer } = await makeToken(server, '--bucket', 'default', '--scope', 'media:write')
    for (const [reference, token] of [
      [unknown, server.token],
      [item.url, other],
      [item.url, writer],
    ] as const)
      await expect(client(token).get(reference)).rejects.toMatchObject({ status: 404, url: reference })
    await expect(client('wrong').get(item.url)).rejects.toMatchObject({ status: 401 })
    const refused = await runClient({ url: base, token: 'wrong' }, 'get', item.url)
    expect([refused.code, refused.stderr]).toEqual([3, expect.stringContaining(`${base} rejects the token`)])
    // A URL that is not one of an item.
    const [reference] = [`${new URL(item.url).origin}/media/`]
    expect(
      await requestsOf(() => expect(client().get(reference)).rejects.toMatchObject({ status: 404 })),
    ).toEqual(['media GET /media/'])
  })

  test('B11, H5 a signed URL of the base URL is redirected with its query', async () => {
    await setPrivate('on')
    const { url } = await client().createLink(item.id, { download: true })
    const { pathname, search } = new URL(url)
    const redirect = await fetch(base + pathname + search, { redirect: 'manual' })
    expect([redirect.status, redirect.headers.get('location')]).toEqual([308, url])
    const response = await fetch(base + pathname + search)
    expect([response.status, response.url, await response.text()]).toEqual([200, url, 'text'])
    expect(response.headers.get('cache-control')).toMatch(/^private, /)
  })
})
