import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { brotliDecompressSync, gunzipSync } from 'node:zlib'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { root } from '../architecture/sources.ts'
import { expectProblem } from '../harness/problem.ts'
import { sendRaw } from '../harness/raw-http.ts'
import { startServer, type TestServer } from '../harness/server.ts'

const dist = join(root, 'packages/gallery/dist')

let server: TestServer
beforeAll(async () => {
  server = await startServer({ MEDIABUCKET_CORS_ORIGINS: 'https://app.example' })
})
afterAll(() => server[Symbol.asyncDispose]())

/** A request without a token, with only the given content codings. */
const get = (path: string, headers: Record<string, string> = {}, method = 'GET') =>
  fetch(server.url + path, { method, headers: { 'accept-encoding': 'identity', ...headers } })

const bytesOf = async (response: Response) => Buffer.from(await response.arrayBuffer())

/** The URLs that the page loads, as written in it. */
async function loaded(): Promise<string[]> {
  const page = await (await get('/')).text()
  return [...page.matchAll(/\s(?:src|href)="([^"]+)"/g)].map(([, address = '']) => address)
}
const nameOf = (address: string) => address.replace(/^\.\/assets\//, '')

describe('G1', () => {
  test('G1 / is the built page, without a token, and every file that it loads exists', async () => {
    const response = await get('/')
    expect([response.status, response.headers.get('content-type')]).toEqual([200, 'text/html; charset=utf-8'])
    expect(await bytesOf(response)).toEqual(await readFile(join(dist, 'index.html')))
    const names = (await loaded()).map(nameOf)
    expect(names).toEqual(
      expect.arrayContaining([
        expect.stringMatching(/\.js$/),
        expect.stringMatching(/\.css$/),
        expect.stringMatching(/\.svg$/),
      ]),
    )
    for (const name of names) {
      const asset = await get(`/assets/${name}`)
      expect([name, asset.status]).toEqual([name, 200])
      expect(await bytesOf(asset)).toEqual(await readFile(join(dist, 'assets', name)))
    }
  })

  test('G1, G36 addresses that people type lead to the page, below any path of a proxy too', async () => {
    for (const [path, location, target] of [
      ['/upload/', '../upload', '/upload'],
      ['/gallery', './', '/'],
      ['/gallery/', '../', '/'],
    ] as const)
      for (const method of ['GET', 'HEAD']) {
        const response = await fetch(server.url + path, { method, redirect: 'manual' })
        expect([response.status, response.headers.get('location')]).toEqual([302, location])
        expect(response.headers.get('cache-control')).toBe('no-cache')
        expect(new URL(location, `https://a.example/files${path}`).pathname).toBe(`/files${target}`)
        expect((await get(path, {}, method)).status).toBe(200)
      }
  })

  test('G1 every built file is served with its type', async () => {
    const types: Readonly<Record<string, string>> = {
      js: 'text/javascript; charset=utf-8',
      css: 'text/css; charset=utf-8',
      svg: 'image/svg+xml; charset=utf-8',
    }
    const names = (await readdir(join(dist, 'assets'))).filter((name) => !/\.(br|gz)$/.test(name))
    expect(names.length).toBeGreaterThan(2)
    for (const name of names) {
      const response = await get(`/assets/${name}`)
      const type = types[name.split('.').at(-1) ?? '']
      expect([name, response.status, response.headers.get('content-type')]).toEqual([name, 200, type])
    }
  })

  test('G1 HEAD is the response to GET without its body', async () => {
    for (const path of ['/', `/assets/${nameOf((await loaded())[0] ?? '')}`]) {
      const [whole, head] = [await get(path), await get(path, {}, 'HEAD')]
      const comparableHeaders = (response: Response) =>
        [...response.headers].filter(([name]) => !/^(date|connection|keep-alive)$/.test(name))
      expect([head.status, comparableHeaders(head)]).toEqual([200, comparableHeaders(whole)])
      expect(head.headers.get('content-length')).toBe(`${(await bytesOf(whole)).length}`)
      expect(await head.text()).toBe('')
    }
  })

  test('G1 with MEDIABUCKET_GALLERY=off there is no page', async () => {
    await using bare = await startServer({ MEDIABUCKET_GALLERY: 'off' })
    for (const path of ['/', '/gallery', '/upload/', `/assets/${nameOf((await loaded())[0] ?? '')}`]) {
      await expectProblem(await fetch(bare.url + path), 404, 'route-unknown')
    }
    expect(bare.stdout()).not.toContain('browser')
  })
})

const policyOf = (headers: Pick<Headers, 'get'> | ReadonlyMap<string, string>): Record<string, string> =>
  Object.fromEntries(
    (headers.get('content-security-policy') ?? '').split('; ').map((rule) => {
      const [name = '', ...sources] = rule.split(' ')
      return [name, sources.join(' ')]
    }),
  )

test('G2, G15 at its base URL the page may load code only from its assets, elsewhere from its origin', async () => {
  const set = { MEDIABUCKET_BASE_URL: 'https://media.example/a;b' }
  await using own = await startServer({ ...set, MEDIABUCKET_MEDIA_BASE_URL: 'https://bytes.example/c' })
  const policyAt = async (host: string) => {
    const head = `GET / HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`
    return policyOf((await sendRaw(own.url, head)).headers)
  }
  for (const host of ['media.example', 'MEDIA.example:443']) {
    expect(await policyAt(host)).toMatchObject({
      'script-src': 'https://media.example/a%3Bb/assets/',
      'style-src': 'https://media.example/a%3Bb/assets/',
      'img-src': "'self' https://bytes.example",
      'media-src': "'self' https://bytes.example",
      'connect-src': "'self' https://bytes.example",
    })
  }
  for (const host of ['other.example', 'media.example:80'])
    expect(await policyAt(host)).toMatchObject({ 'script-src': "'self'", 'style-src': "'self'" })
})

test('G2 the policy of the page allows only its own origin and nothing inline', async () => {
  const { headers } = await get('/')
  expect(policyOf(headers)).toEqual({
    'default-src': "'none'",
    'script-src': "'self'",
    'style-src': "'self'",
    'img-src': "'self'",
    'media-src': "'self'",
    'connect-src': "'self'",
    'worker-src': "'none'",
    'manifest-src': "'none'",
    'object-src': "'none'",
    'frame-src': "'none'",
    'base-uri': "'none'",
    'form-action': "'none'",
    'frame-ancestors': "'none'",
    'require-trusted-types-for': "'script'",
    'trusted-types': "'none'",
  })
  expect(headers.get('x-content-type-options')).toBe('nosniff')
  expect(headers.get('referrer-policy')).toBe('no-referrer')
  expect(headers.get('cross-origin-opener-policy')).toBe('same-origin')
  expect(await (await get('/')).text()).not.toMatch(/<script(?![^>]*\ssrc=)|\son\w+=|<style|\sstyle=/i)
})

describe('G3', () => {
  test('G3 caches must revalidate the page, and a request for an unchanged page gets a 304', async () => {
    const { headers } = await get('/')
    expect(headers.get('cache-control')).toBe('no-cache')
    const etag = headers.get('etag') ?? ''
    const same = await get('/', { 'if-none-match': `"other", W/${etag}` })
    expect([same.status, same.headers.get('etag'), await same.text()]).toEqual([304, etag, ''])
    expect(same.headers.get('content-security-policy')).toBe(headers.get('content-security-policy'))
    expect((await get('/', { 'if-none-match': '"other"' })).status).toBe(200)
  })

  test('G3 the names of assets contain a hash, and caches may store them for a year', async () => {
    const addresses = await loaded()
    expect(addresses.every((address) => /-[\w-]{8}\.\w+$/.test(address))).toBe(true)
    for (const address of addresses) {
      const { headers } = await get(`/assets/${nameOf(address)}`)
      expect(headers.get('cache-control')).toBe('public, max-age=31536000, immutable')
      expect(headers.get('x-content-type-options')).toBe('nosniff')
      const same = await get(`/assets/${nameOf(address)}`, { 'if-none-match': headers.get('etag') ?? '' })
      expect(same.status).toBe(304)
    }
  })

  test.each(['none.js', '..%2findex.html', '..%2f..%2fpackage.json', '__proto__', 'index.html', '%2e%2e'])(
    'G3, P4 /assets/%s is unknown',
    async (name) => {
      const head = `GET /assets/${name} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`
      const { status, body } = await sendRaw(server.url, head)
      expect([status, JSON.parse(body).code]).toEqual([404, 'route-unknown'])
    },
  )

  test('G3 the compressed copies have no URL of their own', async () => {
    const copies = (await readdir(join(dist, 'assets'))).filter((name) => /\.(br|gz)$/.test(name))
    expect(copies).not.toEqual([])
    for (const name of copies) await expectProblem(await get(`/assets/${name}`), 404, 'route-unknown')
  })
})

describe('G4', () => {
  /** The raw response: fetch would decompress it and hide its coding. */
  async function coded(path: string, accepted: string | null) {
    const more = accepted === null ? '' : `Accept-Encoding: ${accepted}\r\n`
    return await sendRaw(server.url, `GET ${path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n${more}\r\n`)
  }
  const unpack = { br: brotliDecompressSync, gzip: gunzipSync }

  test.each([
    ['gzip, deflate, br, zstd', 'br'],
    ['gzip', 'gzip'],
    ['br;q=0, gzip;q=0.1', 'gzip'],
    ['*', 'br'],
    ['deflate', undefined],
    ['identity, br;q=0', undefined],
    [null, undefined],
  ] as const)('G4 a request that accepts %j receives %j', async (accepted, coding) => {
    for (const path of [
      '/',
      `/assets/${nameOf((await loaded()).find((name) => /\.js$/.test(name)) ?? '')}`,
    ]) {
      const { status, headers, body } = await coded(path, accepted)
      expect([status, headers.get('content-encoding')]).toEqual([200, coding])
      expect(headers.get('vary')).toBe('Origin, Accept-Encoding')
      const bytes = Buffer.from(body, 'latin1')
      expect(headers.get('content-length')).toBe(`${bytes.length}`)
      const plain = await bytesOf(await get(path))
      expect(coding ? unpack[coding](bytes) : bytes).toEqual(plain)
      if (coding) expect(bytes.length).toBeLessThan(plain.length)
    }
  })

  test('G4 each coding has its own entity tag', async () => {
    const tags = await Promise.all(
      ['br', 'gzip', null].map(async (coding) => (await coded('/', coding)).headers.get('etag')),
    )
    expect(new Set(tags).size).toBe(3)
    const other = await get('/', { 'accept-encoding': 'br', 'if-none-match': tags[1] ?? '' })
    expect(other.status).toBe(200)
  })
})

test('G5 every URL in the page is relative', async () => {
  const addresses = await loaded()
  expect(addresses).not.toEqual([])
  expect(addresses.filter((address) => !/^\.\/assets\/[\w.-]+$/.test(address))).toEqual([])
})
