import type {
  Browser,
  BrowserContext,
  BrowserContextOptions,
  FileChooser,
  Locator,
  Page,
} from 'playwright-core'
import { expect } from 'vitest'
import { strings } from '../../packages/gallery/src/strings.ts'
import type { TestServer } from '../harness/server.ts'

/** Somebody at the gallery. Disposing checks what must hold in every visit, and closes the page's window. */
export interface Visit extends AsyncDisposable {
  readonly page: Page
  readonly context: BrowserContext
  /** All that the page has asked for, in order. */
  readonly requests: readonly string[]
  /** The statuses of all answers from an address. */
  statusesOf(url: string): readonly number[]
  signIn(token: string): Promise<void>
  button(name: string): Locator
  /** The files of the page that is shown. */
  readonly files: Locator
  /** Gives the files that the button asks for. */
  choose(button: string, files: Parameters<FileChooser['setFiles']>[0]): Promise<void>
}

export interface Where {
  /** Where the page is, when not at the server itself. */
  readonly url?: string
  /** The URL of another host that the page may load from: that of the bytes. */
  readonly alsoAsked?: string
  /** What stands behind the address, with its `#`. */
  readonly hash?: string
  readonly options?: BrowserContextOptions
  /** One that is there already, such as that of a browser with a profile of its own. */
  readonly context?: BrowserContext
}

/** What the network refuses is logged by the browser; without TLS, one header is told to be useless. */
const expected = /^(Failed to load resource|The Cross-Origin-Opener-Policy header has been ignored)/

const tellViolations = `addEventListener('securitypolicyviolation', ({ effectiveDirective, blockedURI }) =>
  console.error('policy violated: ' + effectiveDirective + ' by ' + blockedURI))`

export async function visit(browser: Browser | null, server: TestServer, where: Where = {}): Promise<Visit> {
  const context = where.context ?? (await browser?.newContext({ reducedMotion: 'reduce', ...where.options }))
  if (!context) throw new Error('a visit needs a browser or a window of one')
  const page = await context.newPage()
  // Long enough for a busy machine, on which ten megabytes take seconds to reach the browser.
  page.setDefaultTimeout(30_000)
  const faults: string[] = []
  const requests: string[] = []
  const answers: (readonly [url: string, status: number])[] = []
  await page.addInitScript({ content: tellViolations })
  page.on('pageerror', (error) => faults.push(`uncaught: ${error.stack ?? error.message}`))
  page.on('console', (message) => {
    const text = message.text()
    if (message.type() === 'error' && !expected.test(text)) faults.push(text)
  })
  page.on('request', (request) => requests.push(request.url()))
  page.on('response', (answer) => answers.push([answer.url(), answer.status()]))
  const url = where.url ?? server.url
  await page.goto(`${url}/${where.hash ?? ''}`)

  const button = (name: string) => page.getByRole('button', { name, exact: true })
  return {
    page,
    context,
    requests,
    statusesOf: (asked) => answers.filter(([from]) => from === asked).map(([, status]) => status),
    button,
    files: page.getByRole('list', { name: strings.listing.grid }).getByRole('listitem'),
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
      // G2: nothing was refused by the policy; G5: nothing was asked of others; G6: no address held a token.
      expect(faults).toEqual([])
      const known = [origin, where.alsoAsked]
      expect(requests.filter((asked) => !known.includes(new URL(asked).origin))).toEqual([])
      expect([...requests, address].filter((asked) => asked.includes('mbkt_'))).toEqual([])
      expect(server.stderr()).not.toMatch(/mbkt_[0-9a-z]/)
    },
  }
}
