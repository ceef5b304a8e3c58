import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { expectProblem } from '../harness/problem.ts'
import { responseOf, sendRaw } from '../harness/raw-http.ts'
import { runCommand, startServer, type TestServer } from '../harness/server.ts'
import { upload } from '../harness/upload.ts'
import { readItem, readPage } from '../harness/wire.ts'
import { readDescription } from '../openapi/conformance.ts'

const base = 'https://media.example'
const bytes = 'https://bytes.example:8443/files'
let server: TestServer
beforeAll(async () => {
  server = await startServer({ MEDIABUCKET_BASE_URL: base, MEDIABUCKET_MEDIA_BASE_URL: bytes })
})
afterAll(() => server[Symbol.asyncDispose]())

async function ask(host: string, path: string, lines = '', method = 'GET'): Promise<Response> {
  const auth = `Authorization: Bearer ${server.token}\r\n`
  const head = `${method} ${path} HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n${auth}${lines}\r\n`
  return responseOf(await sendRaw(server.url, head))
}

test('L14, M1 URLs of bytes start with the media base URL, all others with the base URL', async () => {
  const item = await upload(server, 'text', { name: 'a.txt', type: 'text/plain' })
  expect(item.url).toBe(`${bytes}/media/${item.id}.txt`)
  const page = await readPage(await server.request('/api/media'))
  expect(page.data).toContain(item.url)
  expect(page.path).toBe(`${base}/api/media`)
  const response = await server.request(`/api/media/${item.id}`)
  expect((await readItem(response)).url).toBe(item.url)
})

test('L16 an entity tag from before the setting does not match after it', async () => {
  await using plain = await startServer({ MEDIABUCKET_BASE_URL: base })
  await upload(plain, 'text')
  const { headers } = await plain.request('/api/media')
  const authorization = `Bearer ${plain.token}`
  await plain.stop()
  await using later = await startServer(
    { MEDIABUCKET_BASE_URL: base, MEDIABUCKET_MEDIA_BASE_URL: bytes },
    plain.data,
  )
  const asked = { authorization, 'if-none-match': headers.get('etag') ?? '' }
  expect((await later.request('/api/media', { headers: asked })).status).toBe(200)
})

describe('B11', () => {
  const mainHosts = ['media.example', 'media.example:443', 'Media.Example']

  test('the media host serves only bytes', async () => {
    const { id } = await upload(server, 'text', { name: 'a.txt', type: 'text/plain' })
    for (const host of ['bytes.example:8443', 'BYTES.example:8443']) {
      const response = await ask(host, `/media/${id}.txt`)
      expect([response.status, await response.text()]).toEqual([200, 'text'])
      for (const path of ['/', '/api/media', '/api/media?page=1', '/v1/media/', `/api/media/${id}`, '/docs'])
        await expectProblem(await ask(host, path), 404, 'route-unknown')
      await expectProblem(await ask(host, '/api/media', '', 'POST'), 404, 'route-unknown')
      await expectProblem(await ask(host, '/media/none'), 404, 'media-unknown')
    }
  })

  test('D1 the host of the base URL redirects requests for bytes, and serves everything else', async () => {
    const { id } = await upload(server, 'text', { name: 'a.txt', type: 'text/plain' })
    const { expectDescribed } = await readDescription(server)
    for (const host of mainHosts) {
      for (const [path, method] of [
        [`/media/${id}.txt?variant=thumb`, 'GET'],
        [`/media/${id}`, 'HEAD'],
      ] as const) {
        const response = await ask(host, path, '', method)
        expect([response.status, response.headers.get('location')]).toEqual([308, bytes + path])
        await expectDescribed(method, '/media/{name}', response)
      }
      for (const path of ['/', '/api/media', `/api/media/${id}`])
        expect((await ask(host, path)).status).toBe(200)
    }
  })

  test('B10 a request for code is refused, not redirected', async () => {
    const response = await ask('media.example', '/media/x', 'Sec-Fetch-Dest: script\r\n')
    await expectProblem(response, 403, 'destination-refused')
  })

  test('behind a proxy that changes Host everything is served', async () => {
    const { id } = await upload(server, 'text', { name: 'a.txt', type: 'text/plain' })
    for (const host of ['127.0.0.1:8080', 'bytes.example', 'media.example:8443', '']) {
      for (const path of ['/', '/api/media', `/media/${id}.txt`]) {
        expect([host, path, (await ask(host, path)).status]).toEqual([host, path, 200])
      }
    }
  })

  test('C1 pages of the base URL can read bytes from the media host', async () => {
    const { id } = await upload(server, 'text', { name: 'a.txt', type: 'text/plain' })
    const { headers } = await ask('bytes.example:8443', `/media/${id}.txt`, `Origin: ${base}\r\n`)
    expect(headers.get('access-control-allow-origin')).toBe(base)
    const other = await ask('bytes.example:8443', `/media/${id}.txt`, 'Origin: https://evil.example\r\n')
    expect(other.headers.get('access-control-allow-origin')).toBeNull()
  })
})

test.each([
  [base, `${base}/bytes`],
  ['https://media.example:8443', 'http://media.example:8443'],
  ['', 'http://127.0.0.1:8080'],
])('O7, B11 with the base URL %s the media base URL %s is refused', async (own, media) => {
  const settings = { MEDIABUCKET_BASE_URL: own, MEDIABUCKET_MEDIA_BASE_URL: media }
  await expect(runCommand(['serve'], settings)).rejects.toMatchObject({
    stderr: expect.stringContaining('MEDIABUCKET_MEDIA_BASE_URL'),
  })
})
