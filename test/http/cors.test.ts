import { once } from 'node:events'
import { connect } from 'node:net'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { responseHeaders } from '../../packages/server/src/http/openapi/description.ts'
import { expectProblem } from '../harness/problem.ts'
import { parseResponse, sendRaw } from '../harness/raw-http.ts'
import { type SharedServer, startServer, type TestServer } from '../harness/server.ts'
import { sharedServer } from '../harness/shared-server.ts'
import { until } from '../harness/until.ts'
import { upload } from '../harness/upload.ts'

const ours = 'https://app.example.org'
const alsoOurs = 'http://localhost:3000'
const foreign = [
  'https://evil.example',
  'http://app.example.org',
  'https://app.example.org:8443',
  'https://app.example.org.evil.example',
  'https://APP.example.org',
  'null',
]
const exposed =
  'ETag, Location, Content-Range, Content-Disposition, Accept-Ranges, Retry-After, RateLimit, RateLimit-Policy, ' +
  'Link, WWW-Authenticate, ' +
  'Content-Location, X-Request-Id, Mediabucket-Variant, Tus-Resumable, Tus-Version, Tus-Extension, Tus-Max-Size, Tus-Checksum-Algorithm, ' +
  'Upload-Offset, Upload-Length, Upload-Defer-Length, Upload-Metadata, Upload-Expires'

/** Described headers that pages can read anyway, or that are for browsers and caches only. */
const unexposed = [
  ...['Cache-Control', 'Last-Modified', 'Vary', 'Content-Encoding', 'Allow'],
  ...['Content-Security-Policy', 'Cross-Origin-Resource-Policy', 'Referrer-Policy', 'X-Content-Type-Options'],
]

test('C2 every header of responses that the API describes is exposed, or is not for scripts', () => {
  const hidden = Object.keys(responseHeaders).filter((name) => !exposed.split(', ').includes(name))
  expect(hidden.toSorted()).toEqual(unexposed.toSorted())
})

const cors = ({ headers }: Response) =>
  [...headers].filter(([name]) => name.startsWith('access-control-')).map(([name]) => name)

/** Responses of each kind to a page of an origin: successes and problems, with and without a token. */
async function responsesTo(server: SharedServer, origin: string | null, urlOfBytes: string) {
  const headers = origin === null ? {} : { origin }
  const bare = (path: string, init: RequestInit = {}) =>
    fetch(new URL(path, server.url), { headers, ...init })
  return {
    listing: await server.request('/api/media', { headers }),
    items: await server.request('/api/items', { headers }),
    upload: await server.request('/api/media', { method: 'POST', body: 'x', headers }),
    bytes: await bare(urlOfBytes),
    'no token': await bare('/api/media'),
    'no such item': await server.request('/api/media/x', { headers }),
    'no such path': await bare('/nowhere'),
    'no such method': await bare('/healthz', { method: 'PUT' }),
    'no readable path': await bare('/media/%zz'),
  }
}

describe('without configured origins', () => {
  let server: SharedServer
  beforeAll(async () => {
    server = await sharedServer()
  })

  test.each([...foreign, ours])('C1 no response allows a page of %s to read it', async (origin) => {
    const responses = await responsesTo(server, origin, (await upload(server, 'x')).url)
    for (const [name, response] of Object.entries(responses))
      expect([name, cors(response)]).toEqual([name, []])
    const preflight = await fetch(`${server.url}/api/media`, {
      method: 'OPTIONS',
      headers: { origin, 'access-control-request-method': 'POST' },
    })
    expect([preflight.status, cors(preflight)]).toEqual([204, []])
    expect(responses.listing.headers.get('vary')).toBe('Authorization, Mediabucket-Bucket, Accept-Encoding')
  })
})

describe('with configured origins', () => {
  let server: TestServer
  let url: string
  beforeAll(async () => {
    server = await startServer({ MEDIABUCKET_CORS_ORIGINS: `${ours}, ${alsoOurs}` })
    url = (await upload(server, 'x')).url
  })
  afterAll(() => server[Symbol.asyncDispose]())

  test.each([ours, alsoOurs])('C1, C2 a page of %s can read every response', async (origin) => {
    for (const [name, { headers }] of Object.entries(await responsesTo(server, origin, url))) {
      expect([name, headers.get('access-control-allow-origin')]).toEqual([name, origin])
      expect([name, headers.get('access-control-expose-headers')]).toEqual([name, exposed])
      expect([name, headers.get('access-control-allow-credentials')]).toEqual([name, null])
      expect(headers.get('vary')?.split(', ')).toContain('Origin')
    }
  })

  test.each([...foreign, null])('C1 a foreign origin is never reflected: %s', async (origin) => {
    for (const [name, response] of Object.entries(await responsesTo(server, origin, url))) {
      expect([name, cors(response)]).toEqual([name, []])
      expect(response.headers.get('vary')?.split(', ')).toContain('Origin')
    }
  })

  test('C1, L17 the listing also varies by token and coding', async () => {
    const { headers } = await server.request('/api/media', { headers: { origin: ours } })
    expect(headers.get('vary')).toBe('Origin, Authorization, Mediabucket-Bucket, Accept-Encoding')
  })

  const preflight = (path: string, headers: Record<string, string>) =>
    fetch(new URL(path, server.url), {
      method: 'OPTIONS',
      headers: { origin: ours, 'access-control-request-method': 'DELETE', ...headers },
    })

  test('C2 a preflight allows the methods of the interface and the headers that it asks for', async () => {
    const requested = 'authorization,cache-control,tus-resumable, x-requested-with,x-xsrf-token'
    for (const path of ['/api/media', '/api/media/some-id', '/media/some-id', '/api/uploads']) {
      const response = await preflight(path, { 'access-control-request-headers': requested })
      expect([response.status, await response.text()]).toEqual([204, ''])
      expect(response.headers.get('access-control-allow-origin')).toBe(ours)
      expect(response.headers.get('access-control-allow-methods')?.split(', ')).toEqual([
        'GET',
        'HEAD',
        'POST',
        'PATCH',
        'DELETE',
      ])
      expect(response.headers.get('access-control-allow-headers')).toBe(requested)
      expect(Number(response.headers.get('access-control-max-age'))).toBeGreaterThan(0)
      expect(response.headers.get('access-control-allow-credentials')).toBe(null)
      expect(response.headers.get('vary')).toBe('Origin, Access-Control-Request-Headers')
    }
  })

  test.each([
    ['no header', {}],
    ['what are no names of headers', { 'access-control-request-headers': 'authorization, <x>' }],
    ['more than 1,000 characters', { 'access-control-request-headers': 'x'.repeat(1001) }],
  ])('C2 a preflight that asks for %s allows no header', async (_, headers) => {
    const response = await preflight('/api/media', headers)
    expect(response.status).toBe(204)
    expect(response.headers.get('access-control-allow-origin')).toBe(ours)
    expect(response.headers.has('access-control-allow-headers')).toBe(false)
  })

  test.each(foreign)('C2 a preflight from %s allows nothing', async (origin) => {
    const response = await fetch(`${server.url}/api/media`, {
      method: 'OPTIONS',
      headers: {
        origin,
        'access-control-request-method': 'POST',
        'access-control-request-headers': 'x-requested-with',
      },
    })
    expect([response.status, cors(response)]).toEqual([204, []])
  })

  test('P4, C2 a preflight to an unknown path gets a 404 problem that the page can read', async () => {
    const response = await fetch(`${server.url}/nowhere`, {
      method: 'OPTIONS',
      headers: { origin: ours, 'access-control-request-method': 'POST' },
    })
    expect(response.headers.get('access-control-allow-origin')).toBe(ours)
    await expectProblem(response, 404, 'route-unknown')
  })
})

test('C1 the log names each origin that is refused once, up to ten, and none of the service itself', async () => {
  await using server = await startServer({
    MEDIABUCKET_BASE_URL: 'https://media.example.org/files',
    MEDIABUCKET_CORS_ORIGINS: ours,
  })
  const { url } = await upload(server, 'x')
  const path = new URL(url).pathname.replace('/files', '')
  const logged = () =>
    server.log().flatMap(({ origin, msg }) => (msg.includes('MEDIABUCKET_CORS_ORIGINS') ? [origin] : []))
  const quiet = [ours, null, 'null', 'https://media.example.org', 'http://a b', 'x']
  for (const origin of quiet) await responsesTo(server, origin, path)
  // The gallery at another address: browsers send the origin of the page itself with a POST.
  await server.request('/api/media', { method: 'POST', body: 'x', headers: { origin: server.url } })
  for (const origin of ['https://evil.example', 'https://evil.example'])
    await responsesTo(server, origin, path)
  await expect.poll(logged).toEqual(['https://evil.example'])
  for (let index = 0; index < 20; index += 1)
    await fetch(`${server.url}/healthz`, { headers: { origin: `https://${index}.example` } })
  await until(
    'the last request is logged',
    () => server.log().filter(({ path }) => path === '/healthz').length >= 20,
  )
  expect(logged()).toHaveLength(10)
})

test('C1 with * every page can read responses, and none with credentials', async () => {
  await using server = await startServer({ MEDIABUCKET_CORS_ORIGINS: '*' })
  const { url } = await upload(server, 'x')
  for (const origin of ['https://any.example', null]) {
    for (const [name, { headers }] of Object.entries(await responsesTo(server, origin, url))) {
      expect([name, headers.get('access-control-allow-origin')]).toEqual([name, '*'])
      expect(headers.get('access-control-allow-credentials')).toBe(null)
      expect(headers.get('vary') ?? '').not.toContain('Origin')
    }
  }
})

/** Writes the parts one after the other, and reads until the server closes the connection. */
async function sendParts(url: string, parts: readonly string[]) {
  const socket = connect(Number(new URL(url).port), '127.0.0.1').setNoDelay()
  const chunks: Buffer[] = []
  socket.on('data', (chunk) => chunks.push(chunk))
  await once(socket, 'connect')
  for (const part of parts) await new Promise<void>((resolve) => socket.write(part, () => resolve()))
  if (!socket.closed) await once(socket, 'close')
  return parseResponse(Buffer.concat(chunks).toString('latin1'))
}

test('C1 a page can read the 431 problem of a request that names its origin after 16 KiB', async () => {
  await using server = await startServer({ MEDIABUCKET_CORS_ORIGINS: ours })
  const start = `POST /api/media HTTP/1.1\r\nHost: x\r\nX: ${'x'.repeat(17_000)}\r\n`
  const rest = `Origin: ${ours}\r\nContent-Length: 1000000\r\n\r\n`
  for (const parts of [
    [start + rest],
    [start + rest, ...Array<string>(10).fill('y'.repeat(100_000))],
    [start, rest],
    [start, rest.slice(0, 12), rest.slice(12)],
    [start, `X-2: ${'x'.repeat(30_000)}\r\n`, rest],
  ]) {
    const { status, headers } = await sendParts(server.url, parts)
    expect([status, headers.get('access-control-allow-origin')]).toEqual([431, ours])
  }
  // Without an end of the head, and without an origin in the part that is read.
  for (const more of ['', 'x'.repeat(100_000)]) {
    const { status, headers } = await sendParts(server.url, [start + more])
    expect([status, headers.has('access-control-allow-origin')]).toEqual([431, false])
  }
})

test('C1, C2 a page can read the problem of a request whose head is too large, and a preflight never allows *', async () => {
  await using server = await startServer({ MEDIABUCKET_CORS_ORIGINS: ours })
  const tooLarge = (origin: string) =>
    sendRaw(
      server.url,
      `GET /healthz HTTP/1.1\r\nHost: x\r\nOrigin: ${origin}\r\nX: ${'x'.repeat(20_000)}\r\n\r\n`,
    )
  const { status, headers } = await tooLarge(ours)
  expect([status, headers.get('access-control-allow-origin')]).toEqual([431, ours])
  expect((await tooLarge('https://evil.example')).headers.has('access-control-allow-origin')).toBe(false)
  for (const [requested, allowed] of [
    ['*', null],
    ['authorization, *', null],
    ['x-a,*,x-b', null],
    ['x-a*', 'x-a*'],
    ['authorization,x-b', 'authorization,x-b'],
  ]) {
    const response = await fetch(`${server.url}/api/media`, {
      method: 'OPTIONS',
      headers: {
        origin: ours,
        'access-control-request-method': 'POST',
        'access-control-request-headers': requested ?? '',
      },
    })
    expect([requested, response.headers.get('access-control-allow-headers')]).toEqual([requested, allowed])
  }
})
