import { readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { join } from 'node:path'
import type { Page } from 'playwright-core'
import { rolldown } from 'rolldown'
import { expect } from 'vitest'
import { root } from '../architecture/sources.ts'
import { sharedBrowser } from '../harness/chromium.ts'
import { startServer, type TestServer } from '../harness/server.ts'
import { makeToken } from '../harness/token.ts'

/** An example of docs/widgets.md or docs/recipes.md: the body of a page and its script. */
interface Example {
  /** The code of the page's backend; null for that of an earlier example. */
  readonly backend: string | null
  readonly body: string
  readonly script: string
}

const backendCode = /```js\n(\/\*\*.*\nexport [\s\S]*?)```/
const example =
  /^## (.+)\n[\s\S]*?```html\n([\s\S]*?)```\n\n(?:<!-- not run: .+ -->\n)?```js\n([\s\S]*?)```$/gm

/** The examples of both pages by their headings. */
const examples: ReadonlyMap<string, Example> = new Map(
  ['docs/widgets.md', 'docs/recipes.md']
    .flatMap((path) => readFileSync(join(root, path), 'utf8').split(/^(?=## )/m))
    .flatMap((section) => [...section.matchAll(example)])
    .map(([whole, heading = '', body = '', script = '']) => [
      heading,
      { body, script, backend: backendCode.exec(whole)?.[1] ?? null },
    ]),
)

const backends = [...examples.values()].map(({ backend }) => backend)

/** Bundles a script for browsers. Packages are those of this directory. */
async function bundle(script: string): Promise<string> {
  const entry = join(import.meta.dirname, 'page.js')
  const made = await rolldown({
    input: entry,
    platform: 'browser',
    transform: { define: { 'process.env.NODE_ENV': '"production"' } },
    moduleTypes: { '.css': 'empty' },
    plugins: [
      {
        name: 'page',
        resolveId: (id) => (id === entry ? entry : null),
        load: (id) => (id === entry ? `const { url, token } = globalThis.settings\n${script}` : null),
      },
    ],
  })
  const { output } = await made.generate({ format: 'esm', codeSplitting: false })
  await made.close()
  return output[0].code
}

/** A service, and pages of another origin that use it. */
export interface Stage extends AsyncDisposable {
  readonly server: TestServer
  /** Opens the example with this heading. Its errors and refused requests fail the test that closes it. */
  open(heading: string, token?: string): Promise<OpenPage>
}

interface OpenPage extends AsyncDisposable {
  readonly page: Page
}

export async function openStage(settings: Readonly<Record<string, string>> = {}): Promise<Stage> {
  const documents = new Map<string, { readonly type: string; readonly text: string }>()
  let createToken: (() => Promise<unknown>) | null = null
  const pages = createServer(async ({ url = '' }, response) => {
    if (url === '/upload-token' && createToken !== null) {
      response.writeHead(200).end(JSON.stringify(await createToken()))
      return
    }
    const found = documents.get(url)
    response.writeHead(found ? 200 : 404, { 'content-type': found?.type ?? 'text/plain' }).end(found?.text)
  })
  await new Promise<void>((done) => pages.listen(0, '127.0.0.1', done))
  const address = pages.address()
  if (address === null || typeof address === 'string') throw new Error('the server of the pages has no port')
  const origin = `http://127.0.0.1:${address.port}`
  const server = await startServer({ MEDIABUCKET_CORS_ORIGINS: origin, ...settings })

  return {
    server,
    async open(heading, token = server.token) {
      const found = examples.get(heading)
      if (found === undefined) throw new Error(`no example is called ${heading}`)
      const backend = found.backend ?? backends.find((code) => code !== null)
      if (backend != null) {
        const { createUploadToken } = await import(`data:text/javascript,${encodeURIComponent(backend)}`)
        const manager = await makeToken(server, '--bucket', 'default', '--scope', 'tokens:manage,media:write')
        createToken = () => createUploadToken(server.url, manager.token)
      }
      const path = `/${encodeURIComponent(heading)}`
      const given = JSON.stringify({ url: server.url, token })
      documents.set(path, {
        type: 'text/html',
        text: `<!doctype html><meta charset="utf-8">${found.body}<script>settings = ${given}</script><script type="module" src="${path}.js"></script>`,
      })
      documents.set(`${path}.js`, { type: 'text/javascript', text: await bundle(found.script) })
      const context = await (await sharedBrowser()).newContext()
      context.setDefaultTimeout(60_000)
      const page = await context.newPage()
      const errors: string[] = []
      page.on('pageerror', (error) => errors.push(error.message))
      page.on('requestfailed', (request) => {
        const reason = request.failure()?.errorText ?? ''
        if (reason !== 'net::ERR_ABORTED') errors.push(`${request.method()} ${request.url()}: ${reason}`)
      })
      await page.goto(`${origin}${path}`)
      return {
        page,
        async [Symbol.asyncDispose]() {
          await context.close()
          expect(errors).toEqual([])
        },
      }
    },
    async [Symbol.asyncDispose]() {
      await server[Symbol.asyncDispose]()
      pages.close()
    },
  }
}
