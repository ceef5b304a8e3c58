import type {
  Browser,
  BrowserContext,
  BrowserContextOptions,
  FileChooser,
  Locator,
  Page,
} from 'playwright-core'
import { expect } from 'vitest'
import { loadTexts, strings } from '../../packages/gallery/src/strings.ts'
import { listenForFileChoosers } from '../harness/chromium.ts'
import type { SharedServer } from '../harness/server.ts'

/** An open gallery. Disposing it asserts what must hold in every visit, and closes the page. */
export interface Visit extends AsyncDisposable {
  readonly page: Page
  readonly context: BrowserContext
  /** The URLs of all requests of the page, in order. */
  readonly requests: readonly string[]
  /** The statuses of all responses from a URL. */
  statusesOf(url: string): readonly number[]
  signIn(token: string): Promise<void>
  button(name: string): Locator
  /** The files that are drawn. */
  readonly files: Locator
  /** Clicks a button that opens the file picker, and chooses files. */
  choose(button: string, files: Parameters<FileChooser['setFiles']>[0]): Promise<void>
}

export interface Where {
  /** The URL of the page, if it is not the server's. */
  readonly url?: string
  /** The URL of another host that the page may load from: the media base URL. */
  readonly alsoAsked?: string
  /** The fragment of the URL, with its `#`. Default: that of the list in the order of uploads. */
  readonly hash?: string
  readonly options?: BrowserContextOptions
  /** Whether the test moves the clock of the pages, from the first one on. */
  readonly movesClock?: boolean
  /** An existing context, such as that of a browser with its own profile. */
  readonly context?: BrowserContext
}

// Most tests read some of these.
await loadTexts('deletion', 'selected', 'slides', 'uploads')

/** Console messages that tests expect: failed requests, and a header that needs TLS. */
const expected = /^(Failed to load resource|The Cross-Origin-Opener-Policy header has been ignored)/

/** How many times as long the scripts of the page take (CONTRIBUTING.md). */
const slowdown = Number(process.env['MEDIABUCKET_TEST_SLOWDOWN'] ?? 1)

const tellViolations = `addEventListener('securitypolicyviolation', ({ effectiveDirective, blockedURI }) =>
  console.error('policy violated: ' + effectiveDirective + ' by ' + blockedURI))`

/** From now on the scripts of the page take `rate` times as long. */
export async function slowDown(page: Page, rate: number): Promise<void> {
  const tools = await page.context().newCDPSession(page)
  await tools.send('Emulation.setCPUThrottlingRate', { rate })
}

export async function visit(
  browser: Browser | null,
  server: SharedServer,
  where: Where = {},
): Promise<Visit> {
  const context = where.context ?? (await browser?.newContext({ reducedMotion: 'reduce', ...where.options }))
  if (!context) throw new Error('a visit needs a browser or a context')
  if (where.movesClock) await context.clock.install()
  // On a busy machine, ten megabytes take seconds to reach the browser.
  context.setDefaultTimeout(60_000)
  const page = await context.newPage()
  listenForFileChoosers(page)
  if (slowdown > 1) await slowDown(page, slowdown)
  const faults: string[] = []
  const requests: string[] = []
  const responses: (readonly [url: string, status: number])[] = []
  await page.addInitScript({ content: tellViolations })
  page.on('pageerror', (error) => faults.push(`uncaught: ${error.stack ?? error.message}`))
  page.on('console', (message) => {
    const text = message.text()
    if (message.type() === 'error' && !expected.test(text)) faults.push(text)
  })
  page.on('request', (request) => requests.push(request.url()))
  page.on('response', (response) => responses.push([response.url(), response.status()]))
  const url = where.url ?? server.url
  await page.goto(`${url}/${where.hash ?? '#order=oldest'}`)

  const button = (name: string) => page.getByRole('button', { name, exact: true })
  return {
    page,
    context,
    requests,
    statusesOf: (url) => responses.filter(([from]) => from === url).map(([, status]) => status),
    button,
    files: page.locator('.timeline .tile'),
    async signIn(token) {
      await page.getByLabel(strings.signIn.token, { exact: true }).fill(token)
      await button(strings.signIn.submit).click()
      await page.getByRole('button', { name: strings.header.signOut }).waitFor()
    },
    async choose(name, files) {
      const [chooser] = await Promise.all([
        page.waitForEvent('filechooser'),
        button(name).filter({ visible: true }).first().click(),
      ])
      await chooser.setFiles(files)
    },
    async [Symbol.asyncDispose]() {
      const address = page.url()
      if (where.context) await page.close()
      else await context.close()
      const { origin } = new URL(url)
      // G2: no violation of the policy; G5: no request to another host; G6: no token in a URL.
      expect(faults).toEqual([])
      const known = [origin, where.alsoAsked]
      expect(requests.filter((url) => !known.includes(new URL(url).origin))).toEqual([])
      expect([...requests, address].filter((url) => /mbk[ts]_/.test(url))).toEqual([])
      expect(server.stderr()).not.toMatch(/mbk[ts]_[0-9a-z]/)
    },
  }
}
