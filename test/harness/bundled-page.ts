import { createServer } from 'node:http'
import { join } from 'node:path'
import type { BrowserContextOptions, Page } from 'playwright-core'
import { rolldown } from 'rolldown'
import { expect } from 'vitest'
import { listenForFileChoosers, sharedBrowser } from './chromium.ts'

/** A script of a page, and the directory from which its imports are resolved. `name` has the extension of its language. */
export interface PageScript {
  readonly directory: string
  readonly name: string
  readonly code: string
}

/** Bundles a script for browsers. */
export async function bundleScript({ directory, name, code }: PageScript): Promise<string> {
  const entry = join(directory, name)
  const bundle = await rolldown({
    input: entry,
    platform: 'browser',
    transform: {
      define: {
        'process.env.NODE_ENV': '"production"',
        __VUE_OPTIONS_API__: 'true',
        __VUE_PROD_DEVTOOLS__: 'false',
        __VUE_PROD_HYDRATION_MISMATCH_DETAILS__: 'false',
      },
    },
    moduleTypes: { '.css': 'empty' },
    // Directives of React are for its own bundlers.
    onLog: (level, log, report) => log.code !== 'MODULE_LEVEL_DIRECTIVE' && report(level, log),
    plugins: [
      {
        name: 'page',
        resolveId: (id) => (id === entry ? entry : null),
        load: (id) => (id === entry ? code : null),
      },
    ],
  })
  const { output } = await bundle.generate({ format: 'esm', codeSplitting: false })
  await bundle.close()
  return output[0].code
}

/** Pages of an origin of their own. */
export interface BundledPages extends AsyncDisposable {
  readonly origin: string
  /** Opens a page with this body, these global variables and this bundled script. Its errors fail the test that closes it. */
  open(
    script: string,
    globals: Readonly<Record<string, unknown>>,
    options?: { readonly body?: string; readonly context?: BrowserContextOptions },
  ): Promise<OpenPage>
}

interface OpenPage extends AsyncDisposable {
  readonly page: Page
}

export async function serveBundledPages(): Promise<BundledPages> {
  const documents = new Map<string, { readonly type: string; readonly text: string }>()
  const server = createServer(({ url = '' }, response) => {
    const found = documents.get(url)
    response.writeHead(found ? 200 : 404, { 'content-type': found?.type ?? 'text/plain' }).end(found?.text)
  })
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('the server of the pages has no port')
  const origin = `http://127.0.0.1:${address.port}`
  let count = 0

  return {
    origin,
    async open(script, globals, { body = '<main id="app"></main>', context: options } = {}) {
      count += 1
      const assigned = JSON.stringify(globals).replaceAll('<', '\\u003c')
      documents.set(`/${count}`, {
        type: 'text/html',
        text: `<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>App</title>${body}<script>Object.assign(globalThis, ${assigned})</script><script type="module" src="/${count}.js"></script></html>`,
      })
      documents.set(`/${count}.js`, { type: 'text/javascript', text: script })
      const context = await (await sharedBrowser()).newContext(options)
      context.setDefaultTimeout(60_000)
      const page = await context.newPage()
      listenForFileChoosers(page)
      const errors: string[] = []
      page.on('pageerror', (error) => errors.push(error.message))
      page.on('console', (message) => message.type() === 'error' && errors.push(message.text()))
      await page.goto(`${origin}/${count}`)
      return {
        page,
        async [Symbol.asyncDispose]() {
          await context.close()
          // A request that the service refuses is a line of the console too.
          expect(errors.filter((text) => !text.startsWith('Failed to load resource'))).toEqual([])
        },
      }
    },
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await new Promise((done) => server.close(done))
    },
  }
}
