import { randomBytes } from 'node:crypto'
import { rm, writeFile } from 'node:fs/promises'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { newItemId } from '../../packages/server/src/core/ids.ts'
import { freshMetrics } from '../harness/fresh-metrics.ts'
import { quarters } from '../harness/pictures.ts'
import { expectProblem } from '../harness/problem.ts'
import { sendRaw } from '../harness/raw-http.ts'
import { startServer, type TestServer } from '../harness/server.ts'
import { fsck } from '../harness/upkeep.ts'
import { blobPath, upload } from '../harness/upload.ts'

const origin = 'https://app.example.org'
/** Larger than a file that is stored in the catalog. */
const large = 'x'.repeat(70_000)
let server: TestServer
/** Paths by the words that the requests below use. */
let paths: Readonly<Record<string, string>>
beforeAll(async () => {
  server = await startServer({ MEDIABUCKET_CORS_ORIGINS: origin, MEDIABUCKET_ADDRESS_RATE: '2000/1h' })
  const pathOf = async (bytes: string | Uint8Array<ArrayBuffer>, name: string, type: string) =>
    new URL((await upload(server, bytes, { name, type })).url).pathname
  const picture = new Uint8Array(await quarters(600, 400).png().toBuffer())
  paths = {
    TEXT: await pathOf('0123456789', 'a.txt', 'text/plain'),
    HTML: await pathOf('<p>hello', 'ä "b".html', 'text/html'),
    PDF: await pathOf('%PDF-1.7\n%%EOF', 'a.pdf', 'application/pdf'),
    UNKNOWN_TYPE: await pathOf('?', 'a.bin', 'application/octet-stream'),
    EMPTY: await pathOf('', 'empty.txt', 'text/plain'),
    PICTURE: await pathOf(picture, 'a.png', 'image/png'),
    LONG: await pathOf(randomBytes(300_000), 'long.bin', 'application/octet-stream'),
    STREAMED: await pathOf(randomBytes(1_500_000), 'longer.bin', 'application/octet-stream'),
    GONE: await pathOf('gone', 'gone.txt', 'text/plain'),
    MISSING: await pathOf(large, 'missing.txt', 'text/plain'),
  }
  const idOf = (name: string) => paths[name]?.slice('/media/'.length).split('.')[0] ?? ''
  await server.request(`/api/media/${idOf('GONE')}`, { method: 'DELETE' })
  await rm(blobPath(server, idOf('MISSING')))
})
afterAll(() => server[Symbol.asyncDispose]())

const unknown = `/media/${newItemId()}`
const plain: readonly string[] = [
  'TEXT',
  'HTML',
  'PDF',
  'UNKNOWN_TYPE',
  'EMPTY',
  'PICTURE',
  'LONG',
  'STREAMED',
]
const variants = ['PICTURE?variant=thumb', 'PICTURE?variant=medium', 'PICTURE?variant=thumb&wait=9']

test.each([...plain, ...variants])(
  'B1 to B6, V4 %s from memory, again and again on one connection, is the response that is not from memory',
  async (path) => {
    const target = path.replace(/^[A-Z_]+/, (word) => paths[word] ?? word)
    const get = async (method: string, headers = {}) => {
      const response = await fetch(server.url + target, { method, headers })
      const received = Object.fromEntries([...response.headers].filter(([name]) => name !== 'date'))
      return { status: response.status, received, body: Buffer.from(await response.arrayBuffer()) }
    }
    for (const method of ['GET', 'HEAD']) {
      // A condition is evaluated with the row of the item.
      const expected = await get(method, { 'if-none-match': '"another"' })
      expect(expected.status).toBe(200)
      for (let round = 0; round < 4; round += 1) expect(await get(method)).toEqual(expected)
    }
  },
)

test('B1, V1 an extension of another item, and a variant that does not exist, are not served from memory', async () => {
  const { TEXT = '', PICTURE = '' } = paths
  for (let round = 0; round < 2; round += 1) {
    await (await fetch(server.url + TEXT)).arrayBuffer()
    await (await fetch(`${server.url}${PICTURE}?variant=thumb`)).arrayBuffer()
  }
  const other = TEXT.replace(/\.txt$/, '.png')
  await expectProblem(await fetch(server.url + other), 404, 'media-unknown')
  await expectProblem(await fetch(`${server.url}${PICTURE}?variant=large`), 400, 'variant-unknown')
  expect((await fetch(server.url + TEXT.replace(/\..*/, ''))).status).toBe(200)
})

describe('bytes that are requested often', () => {
  const get = async (url: string) => {
    const response = await fetch(url)
    return [response.status, await response.text()]
  }

  test('M2 are not served once their item is deleted', async () => {
    const { id, url } = await upload(server, 'requested often')
    for (let round = 0; round < 3; round += 1) expect(await get(url)).toEqual([200, 'requested often'])
    expect((await server.request(`/api/media/${id}`, { method: 'DELETE' })).status).toBe(204)
    await expectProblem(await fetch(url), 404, 'media-unknown')
  })

  test('F3, B9 are served without their file, unless fsck has marked them as damaged', async () => {
    const { id, url } = await upload(server, large)
    expect(await get(url)).toEqual([200, large])
    await writeFile(blobPath(server, id), large.replace('x', 'y'))
    expect(await get(url)).toEqual([200, large])
    await fsck(server.data, '--verify-bytes')
    await expectProblem(await fetch(url), 500, 'bytes-missing')
    await writeFile(blobPath(server, id), large)
    await fsck(server.data, '--verify-bytes')
    expect(await get(url)).toEqual([200, large])
  })

  test('V7 their variants are not served once their item is deleted', async () => {
    const bytes = new Uint8Array(await quarters(40, 40).png().toBuffer())
    const { id, url } = await upload(server, bytes, { name: 'a.png', type: 'image/png' })
    for (let round = 0; round < 3; round += 1) expect((await fetch(`${url}?variant=thumb`)).status).toBe(200)
    await server.request(`/api/media/${id}`, { method: 'DELETE' })
    await expectProblem(await fetch(`${url}?variant=thumb`), 404, 'media-unknown')
  })
})

describe('the cache of bytes', () => {
  const statistics = async () => {
    const text = await freshMetrics(server.url)
    const metricOf = (name: string) =>
      Number(
        text
          .split('\n')
          .find((line) => line.startsWith(name))
          ?.split(' ')[1],
      )
    const requestsOf = (result: string) =>
      metricOf(`mediabucket_bytes_cache_requests_total{result="${result}"}`)
    return {
      requests: requestsOf('hit') + requestsOf('miss'),
      bytes: metricOf('mediabucket_bytes_cache_bytes'),
    }
  }
  const get = async (url: string, headers = {}) => {
    const response = await fetch(url, { headers })
    await response.arrayBuffer()
    return response.status
  }

  test('counts each request that receives bytes once, and no other', async () => {
    const { url } = await upload(server, 'counted', { name: 'a.txt', type: 'text/plain' })
    const { requests } = await statistics()
    // The headers of the response are prepared by the first request without a range.
    expect(await get(url, { range: 'bytes=0-1' })).toBe(206)
    for (let count = 0; count < 3; count += 1) expect(await get(url)).toBe(200)
    for (let count = 0; count < 3; count += 1) expect(await get(url.replace(/\.txt$/, '.png'))).toBe(404)
    expect((await statistics()).requests).toBe(requests + 4)
  })

  test('M2, V7 forgets a deleted item and its variants when they are requested', async () => {
    const bytes = new Uint8Array(await quarters(50, 50).png().toBuffer())
    const { bytes: before } = await statistics()
    const { id, url } = await upload(server, bytes, { name: 'b.png', type: 'image/png' })
    for (let count = 0; count < 3; count += 1)
      expect([await get(url), await get(`${url}?variant=thumb`)]).toEqual([200, 200])
    const { requests, bytes: after } = await statistics()
    expect(after).toBeGreaterThan(before + bytes.length)
    await server.request(`/api/media/${id}`, { method: 'DELETE' })
    for (let count = 0; count < 3; count += 1) expect(await get(url)).toBe(404)
    expect(await statistics()).toEqual({ requests, bytes: before })
  })
})

test('B1, B4 different requests for bytes that arrive at the same time get their own responses', async () => {
  const get = (path: string, ...headers: string[]) =>
    sendRaw(
      server.url,
      [`GET ${path} HTTP/1.1`, 'Host: h', ...headers, 'Connection: close', '', ''].join('\r\n'),
    )
  const { TEXT = '', HTML = '' } = paths
  const responses = await Promise.all([
    get(TEXT),
    get(unknown),
    get(HTML),
    get(TEXT, 'Range: bytes=2-4'),
    get(TEXT, 'If-None-Match: *'),
    get(TEXT),
  ])
  expect(responses.map(({ status }) => status)).toEqual([200, 404, 200, 206, 304, 200])
  expect(responses.map(({ body }) => (body.startsWith('{') ? 'problem' : body))).toEqual([
    '0123456789',
    'problem',
    '<p>hello',
    '234',
    '',
    '0123456789',
  ])
})

test('B1, B3 bytes that are not cached, and are freed when they are sent, are complete in responses of one tick', async () => {
  await using cold = await startServer({ MEDIABUCKET_CACHE: '0' })
  const files = await Promise.all(
    [2_000, 60_000, 700_000].map(async (size) => {
      const bytes = randomBytes(size)
      return { bytes, ...(await upload(cold, bytes, { name: 'a.bin' })) }
    }),
  )
  for (let round = 0; round < 10; round += 1)
    await Promise.all(
      [...files, ...files, ...files].flatMap(({ url, bytes }) => [
        fetch(url, { method: 'HEAD' }).then((response) => response.text()),
        fetch(url).then(async (response) =>
          expect(bytes.equals(Buffer.from(await response.arrayBuffer()))).toBe(true),
        ),
        fetch(url, { headers: { range: 'bytes=1000-1999' } }).then(async (response) =>
          expect(bytes.subarray(1_000, 2_000).equals(Buffer.from(await response.arrayBuffer()))).toBe(true),
        ),
      ]),
    )
})
