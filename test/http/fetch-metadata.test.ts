import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { expectProblem } from '../harness/problem.ts'
import { startServer, type TestServer } from '../harness/server.ts'
import { upload } from '../harness/upload.ts'

let server: TestServer
let script: string
let text: string
beforeAll(async () => {
  server = await startServer({ MEDIABUCKET_CORS_ORIGINS: 'https://app.example' })
  script = (await upload(server, 'alert(1)', { name: 'a.js', type: 'text/javascript' })).url
  text = (await upload(server, 'text', { name: 'a.txt', type: 'text/plain' })).url
})
afterAll(() => server[Symbol.asyncDispose]())

const asked = (url: string, destination: string, site = 'same-origin', method = 'GET') =>
  fetch(url, { method, headers: { 'sec-fetch-dest': destination, 'sec-fetch-site': site } })

describe('B10 browsers cannot load bytes as code', () => {
  test.each([
    ...['script', 'worker', 'sharedworker', 'serviceworker', 'style', 'manifest', 'audioworklet'],
    ...['paintworklet', 'xslt', 'json', 'SCRIPT '],
  ])('as %s', async (destination) => {
    for (const url of [script, text, script.replace('/media/', '/%6dedia/')]) {
      for (const site of ['same-origin', 'same-site', 'cross-site', 'none']) {
        const response = await asked(url, destination, site)
        expect(response.headers.get('cache-control')).toBe('no-store')
        expect(response.headers.get('www-authenticate')).toBe(null)
        await expectProblem(response, 403, 'destination-refused')
      }
    }
    expect((await asked(script, destination, 'none', 'HEAD')).status).toBe(403)
  })

  test.each(['document', 'empty', 'image', 'video', 'audio', 'track', 'font', 'iframe', 'object', 'embed'])(
    'but as %s they are',
    async (destination) => {
      expect((await asked(script, destination, 'cross-site')).status).toBe(200)
      expect((await asked(text, destination)).status).toBe(200)
    },
  )

  test('B10 no path serves a service worker', async () => {
    for (const path of [new URL(script).pathname, '/', '/healthz', '/docs']) {
      const response = await fetch(server.url + path, { headers: { 'service-worker': 'script' } })
      await expectProblem(response, 403, 'destination-refused')
    }
  })

  test('B10 a cache does not reuse an attachment as code', async () => {
    expect((await fetch(script)).headers.get('vary')).toBe('Origin, Sec-Fetch-Dest')
    const etag = (await fetch(script)).headers.get('etag') ?? ''
    const unchanged = await fetch(script, { headers: { 'if-none-match': etag } })
    expect([unchanged.status, unchanged.headers.get('vary')]).toEqual([304, 'Origin, Sec-Fetch-Dest'])
    expect((await fetch(text)).headers.get('vary')).toBe('Origin')
  })
})

test('B5 the URL of the bytes is not sent to other sites', async () => {
  for (const url of [script, text, `${server.url}/media/none`])
    expect((await fetch(url)).headers.get('referrer-policy')).toBe('no-referrer')
})
