import { readFile } from 'node:fs/promises'
import { createServer, request } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Browser, BrowserContext, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { strings } from '../../packages/gallery/src/strings.ts'
import { launchBrowser } from '../harness/chromium.ts'
import { runHere } from '../harness/commands.ts'
import { startGateway } from '../harness/gateway.ts'
import { startServer, type TestServer } from '../harness/server.ts'
import { upload } from '../harness/upload.ts'
import { picture } from './files.ts'
import { visit } from './visit.ts'

const stolen = 'globalThis.ran = (globalThis.ran ?? []).concat(1)'
const code = {
  script: [
    `${stolen}; globalThis.postMessage?.('ran'); onconnect = ({ ports }) => ports[0].postMessage('ran')`,
    'a.js',
  ],
  module: [`${stolen}; export default 1; postMessage?.('ran')`, 'a.mjs'],
  style: ['body { --ran: 1 }', 'a.css'],
  manifest: ['{"name":"ran"}', 'a.webmanifest'],
  json: ['{}', 'a.json'],
} as const
type Kind = keyof typeof code

let browser: Browser
let server: TestServer
let ids: Readonly<Record<Kind, string>>
beforeAll(async () => {
  server = await startServer()
  browser = await launchBrowser()
  const sent = Object.entries(code).map(async ([kind, [bytes, name]]) => [
    kind,
    (await upload(server, bytes, { name, type: 'application/octet-stream' })).id,
  ])
  ids = Object.fromEntries(await Promise.all(sent))
})
afterAll(async () => {
  await browser?.close()
  await server[Symbol.asyncDispose]()
})

/** Code for the page: tries every way to run or install uploaded code; returns those that worked. */
const attempts = `async (urls, longest) => {
    const worked = []
    // Chromium does not always report that a worker could not start.
    const timeout = () => new Promise((_, reject) => setTimeout(reject, longest))
    const run = async (way, trying) => {
      await Promise.race([trying(), timeout()]).then(
        () => worked.push(way),
        () => undefined,
      )
    }
    const loaded = (element, attributes) =>
      new Promise((resolve, reject) => {
        element.onload = resolve
        element.onerror = reject
        for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value)
        document.head.append(element)
      })
    const message = (target, failing) =>
      new Promise((resolve, reject) => {
        target.addEventListener('message', resolve)
        failing.addEventListener('error', reject)
      })
    const element = (name) => document.createElement(name)
    // Fill the cache first.
    await Promise.all(Object.values(urls).map((url) => fetch(url).catch(() => undefined)))
    await run('script', () => loaded(element('script'), { src: urls.script }))
    await run('module script', () => loaded(element('script'), { type: 'module', src: urls.module }))
    await run('import', () => import(urls.module))
    await run('style', () => loaded(element('link'), { rel: 'stylesheet', href: urls.style }))
    await run('preloaded module', () => loaded(element('link'), { rel: 'modulepreload', href: urls.module }))
    await run('worker', async () => {
      const worker = new Worker(urls.script)
      await message(worker, worker)
    })
    await run('module worker', async () => {
      const worker = new Worker(urls.module, { type: 'module' })
      await message(worker, worker)
    })
    await run('shared worker', async () => {
      const shared = new SharedWorker(urls.script)
      shared.port.start()
      await message(shared.port, shared)
    })
    await run('service worker', () => navigator.serviceWorker.register(urls.script))
    await run('worklet', async () => new OfflineAudioContext(1, 1, 8000).audioWorklet.addModule(urls.script))
    if (Reflect.has(globalThis, 'ran')) worked.push('ran')
    if (getComputedStyle(document.body).getPropertyValue('--ran') !== '') worked.push('styled')
    return worked
  }`

/** `longest` is the time after which a way counts as one that does not work. Milliseconds. */
const attempt = async (
  page: Page,
  addresses: Readonly<Record<Kind, string>>,
  longest = 10_000,
): Promise<unknown> => page.evaluate(`(${attempts})(${JSON.stringify(addresses)}, ${longest})`)

const addressesAt = (base: string): Readonly<Record<Kind, string>> => ({
  script: `${base}/media/${ids.script}.js`,
  module: `${base}/media/${ids.module}.mjs`,
  style: `${base}/media/${ids.style}.css`,
  manifest: `${base}/media/${ids.manifest}.webmanifest`,
  json: `${base}/media/${ids.json}.json`,
})

/** A signed-in gallery. */
async function signedIn(context: BrowserContext, url: string): Promise<Page> {
  context.setDefaultTimeout(60_000)
  const page = await context.newPage()
  await page.goto(`${url}/`)
  await page.getByLabel(strings.signIn.token, { exact: true }).fill(server.token)
  await page.getByRole('button', { name: strings.signIn.submit, exact: true }).click()
  await page.getByRole('button', { name: strings.header.signOut }).waitFor()
  return page
}

const hasToken = (page: Page) =>
  page.evaluate(() => JSON.stringify([{ ...sessionStorage }, { ...localStorage }]).includes('mbkt_'))

/** Serves uploads without the server's protection, so that only the policy of the page is left. */
async function serveUnprotected(context: BrowserContext): Promise<void> {
  const types: Readonly<Record<string, string>> = { css: 'text/css', json: 'application/json' }
  await context.route('**/media/*.*', async (route) => {
    const name = new URL(route.request().url()).pathname.split('.').at(-1) ?? ''
    const kind = Object.values(code).find(([, known]) => known === `a.${name}`)
    const type = types[name] ?? 'text/javascript'
    await route.fulfill({
      body: kind?.[0] ?? '',
      contentType: type,
      headers: { 'service-worker-allowed': '/' },
    })
  })
}

test('the attempts below succeed where nothing forbids them', async () => {
  const context = await browser.newContext()
  await context.route(`${server.url}/`, (route) =>
    route.fulfill({ contentType: 'text/html', body: '<body>page</body>' }),
  )
  await serveUnprotected(context)
  const page = await context.newPage()
  await page.goto(`${server.url}/`)
  const ways = ['script', 'module script', 'import', 'style', 'worker', 'module worker', 'shared worker']
  expect(await attempt(page, addressesAt(server.url), 90_000)).toEqual(
    expect.arrayContaining([...ways, 'ran', 'styled']),
  )
  await context.close()
})

describe('G15, B10 no uploaded code runs in the gallery', () => {
  test('with the policies of the page and the server', async () => {
    const context = await browser.newContext()
    const page = await signedIn(context, server.url)
    expect(await attempt(page, addressesAt(server.url))).toEqual([])
    expect(await hasToken(page)).toBe(true)
    await context.close()
  })

  test('G5 with the policy of the page alone, also below the path of a proxy', async () => {
    await using gateway = await startGateway(server.url, '/below/a,path')
    for (const base of [server.url, gateway.url]) {
      const context = await browser.newContext()
      const page = await signedIn(context, base)
      await serveUnprotected(context)
      expect(await attempt(page, addressesAt(base))).toEqual([])
      expect(await hasToken(page)).toBe(true)
      await context.close()
    }
  })

  test.each(['/', '/upload'])(
    'G2 no text becomes HTML or the address of a script in the page %s',
    async (path) => {
      const page = await browser.newPage()
      await page.goto(`${server.url}${path}`)
      const refusals = await page.evaluate(`[
      () => { document.createElement('div').innerHTML = '<b>text</b>' },
      () => { document.createElement('script').src = '/assets/a.js' },
      () => new DOMParser().parseFromString('<b>text</b>', 'text/html'),
      () => trustedTypes.createPolicy('default', {}),
    ].map((attempt) => {
      try {
        return 'done ' + attempt()
      } catch (error) {
        return error instanceof TypeError ? 'refused' : String(error)
      }
    })`)
      expect(refusals).toEqual(['refused', 'refused', 'refused', 'refused'])
      await page.close()
    },
  )

  test('with the server’s protection alone, in a page without a policy', async () => {
    const context = await browser.newContext()
    await context.route(`${server.url}/`, (route) =>
      route.fulfill({
        contentType: 'text/html',
        body: `<!doctype html><link rel="manifest" href="/media/${ids.manifest}"><body>page</body>`,
      }),
    )
    const page = await context.newPage()
    await page.goto(`${server.url}/`)
    expect(await attempt(page, addressesAt(server.url))).toEqual([])
    await context.close()
  })
})

describe('G16 with a media base URL', () => {
  /** A proxy to the server under another host name, for the media base URL. */
  async function startMediaHost(target: () => string) {
    const proxy = createServer((incoming, response) => {
      const { method = '', headers } = incoming
      const onward = request(new URL(incoming.url ?? '', target()), { method, headers }, (got) => {
        response.writeHead(got.statusCode ?? 502, got.headers)
        got.pipe(response)
      })
      onward.on('error', () => response.destroy())
      incoming.pipe(onward)
    })
    await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve))
    const { port } = proxy.address() as AddressInfo
    return {
      url: `http://gallery.test:${port}`,
      async [Symbol.asyncDispose]() {
        proxy.closeAllConnections()
        await new Promise((resolve) => proxy.close(resolve))
      },
    }
  }

  test('B6 the gallery loads texts and downloads pictures from that host', async () => {
    let target = ''
    await using media = await startMediaHost(() => target)
    await using split = await startServer({ MEDIABUCKET_MEDIA_BASE_URL: media.url })
    target = split.url
    await upload(split, 'Text from the other host.', { name: 'a.txt', type: 'text/plain' })
    await using guest = await visit(browser, split, { alsoAsked: media.url })
    await guest.signIn(split.token)
    await guest.files.getByRole('link', { name: 'a.txt' }).click()
    await guest.page
      .getByRole('dialog', { name: strings.viewer.label('a.txt'), exact: true })
      .getByText('Text from the other host.', { exact: true })
      .filter({ visible: true })
      .waitFor()
    expect(guest.requests.filter((url) => url.startsWith(`${media.url}/media/`))).not.toEqual([])

    const bytes = await picture(1).png().toBuffer()
    await upload(split, new Uint8Array(bytes), { name: 'b.png', type: 'image/png' })
    await guest.page.keyboard.press('Escape')
    await guest.files.getByRole('link', { name: 'b.png' }).click()
    const [saved] = await Promise.all([
      guest.page.waitForEvent('download'),
      guest.page.getByRole('link', { name: strings.viewer.download }).filter({ visible: true }).click(),
    ])
    expect(saved.suggestedFilename()).toBe('b.png')
    expect(await readFile(await saved.path())).toEqual(bytes)

    // B11, H5 the redirect to that host keeps the signature.
    await runHere(split.data, 'bucket set', 'default', '--private', 'on')
    await guest.page.reload()
    await guest.page.locator('.tile', { hasText: 'b.png' }).locator('[data-state=shown]').waitFor()
    expect(
      guest.requests.filter((url) => url.startsWith(media.url) && url.includes('signature=')),
    ).not.toEqual([])
    expect(guest.page.url()).toMatch(new RegExp(`^${split.url}/`))
  })
})
