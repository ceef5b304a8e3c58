import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { problemKinds } from '../../packages/server/src/http/problem-kinds.ts'
import { startServer, type TestServer } from '../harness/server.ts'

const baseUrl = 'https://media.example.net/some/where'

let server: TestServer
beforeAll(async () => {
  server = await startServer({
    MEDIABUCKET_BASE_URL: baseUrl,
    MEDIABUCKET_CORS_ORIGINS: 'https://app.example',
  })
})
afterAll(() => server[Symbol.asyncDispose]())

const get = (path: string, headers: Record<string, string> = {}) => fetch(server.url + path, { headers })

test('D1 the document contains the configured base URL and no other', async () => {
  const response = await get('/openapi.json')
  expect(response.headers.get('content-type')).toBe('application/json; charset=utf-8')
  const text = await response.text()
  expect(JSON.parse(text).servers).toEqual([{ url: baseUrl, description: expect.any(String) }])
  // Examples have files of another server, which the service requests.
  const hosts = new Set(text.match(/https?:\/\/[\w.]+/g))
  expect([...hosts].filter((host) => host !== 'https://example.com')).toEqual(['https://media.example.net'])
})

describe('D2', () => {
  test('D2 the page lists every operation of the document with its paths', async () => {
    const { paths } = JSON.parse(await (await get('/openapi.json')).text())
    const page = await (await get('/docs')).text()
    for (const path of Object.keys(paths)) expect(page).toContain(`</span>${path}</div>`)
    expect(page).toContain(`${baseUrl}/api/media`)
  })

  test('D2 the page has no script and loads nothing, and its policy forbids both', async () => {
    const response = await get('/docs')
    const page = await response.text()
    expect(response.headers.get('content-type')).toBe('text/html; charset=utf-8')
    expect(page).not.toMatch(/<script|\son\w+=|\ssrc=|@import|url\(/i)
    expect(response.headers.get('content-security-policy')).toMatch(
      /^default-src 'none'; style-src 'sha256-[\w+/=]+'; img-src data:; /,
    )
  })

  test('D2 every link of the page works', async () => {
    const page = await (await get('/docs')).text()
    const targets = new Set([...page.matchAll(/href="([^"]+)"/g)].map(([, target = '']) => target))
    targets.delete('data:,')
    expect(targets.size).toBeGreaterThan(20)
    for (const target of targets) {
      if (target.startsWith('#')) expect(page).toContain(`id="${target.slice(1)}"`)
      else expect([target, (await get(`/${target}`)).status]).toEqual([target, 200])
    }
  })
})

describe('D3', () => {
  test.each(['/openapi.json', '/docs'])(
    'D3 a conditional request for an unchanged %s gets a 304',
    async (path) => {
      const etag = (await get(path)).headers.get('etag') ?? ''
      const same = await get(path, { 'if-none-match': `"other", W/${etag}` })
      expect([same.status, same.headers.get('etag'), await same.text()]).toEqual([304, etag, ''])
      expect((await get(path, { 'if-none-match': '"other"' })).status).toBe(200)
    },
  )
})

test.each(Object.entries(problemKinds))(
  'P2 /problems/%s shows the cause and the remedy',
  async (code, kind) => {
    const path = `/problems/${code}`
    const plain = await get(path)
    expect(plain.headers.get('content-type')).toBe('text/plain; charset=utf-8')
    expect(await plain.text()).toBe(
      `${kind.title} (${kind.status}, ${code})\n\n${kind.cause}\n\n${kind.cure}\n`,
    )

    const html = await get(path, { accept: 'text/html,application/xhtml+xml,*/*;q=0.8' })
    expect(html.headers.get('content-type')).toBe('text/html; charset=utf-8')
    expect(html.headers.get('content-security-policy')).toContain("default-src 'none'")
    expect(html.headers.get('x-content-type-options')).toBe('nosniff')
    expect(html.headers.get('vary')).toBe('Origin, Accept')
    const text = (await html.text())
      .replaceAll(/<[^>]+>/g, '')
      .replaceAll('&#39;', "'")
      .replaceAll('&quot;', '"')
    for (const part of [kind.title, `${kind.status}`, code, kind.cause, kind.cure]) {
      expect(text).toContain(part.replaceAll('`', ''))
    }
  },
)
