import { spawn } from 'node:child_process'
import { cpSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { delimiter, dirname, join } from 'node:path'
import type { Page } from 'playwright-core'
import sharp from 'sharp'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { packApps, runIn } from '../../release/pack.ts'
import { read, root } from '../architecture/sources.ts'
import { sharedBrowser } from '../harness/chromium.ts'
import { temporaryDirectory } from '../harness/directory.ts'
import { freePort } from '../harness/free-port.ts'
import { quarters } from '../harness/pictures.ts'
import { startServer } from '../harness/server.ts'
import { needTools } from '../harness/tools.ts'
import { until } from '../harness/until.ts'
import { isComplete } from './install.ts'

/** An app, and the document that says how it is made: the section with its name, or the whole page. */
interface ExampleApp {
  readonly name: string
  readonly page: string
  /** Whether the app begins with the directory of the example, and not with an empty one. */
  readonly isCopied: boolean
  readonly tools: readonly string[]
  /** Whether it takes packages of npm that are large. `npm run test:clients` runs these. */
  readonly isLarge: boolean
  /** Starts the app, if its document has no command that the tests run. */
  readonly start?: string
}

const apps: readonly ExampleApp[] = [
  { name: 'html', page: 'docs/start/html.md', isCopied: false, tools: ['python3'], isLarge: false },
  { name: 'django', page: 'docs/start/django.md', isCopied: false, tools: ['django-admin'], isLarge: false },
  { name: 'rails', page: 'docs/start/rails.md', isCopied: false, tools: [], isLarge: true },
  {
    ...{ name: 'laravel', page: 'docs/start/laravel.md', isCopied: false, tools: ['php'], isLarge: true },
    start: `php -S 127.0.0.1:3000 ${join(import.meta.dirname, 'laravel.php')}`,
  },
  { name: 'nextjs', page: 'docs/start/nextjs.md', isCopied: false, tools: [], isLarge: true },
  { name: 'nuxt', page: 'docs/start/nuxt.md', isCopied: false, tools: [], isLarge: true },
  { name: 'astro', page: 'examples/README.md', isCopied: true, tools: [], isLarge: true },
  { name: 'unpic', page: 'examples/README.md', isCopied: true, tools: [], isLarge: true },
]

/** A step of a document: a file that it writes, or commands. */
type Step = { readonly path: string; readonly code: string } | { readonly path: null; readonly code: string }

const fence = /^(<!-- not run: .+ -->\n)?(?:`([^`]+)`:\n\n)?```(\w+)\n([\s\S]*?)^```$/gm

/** The files and commands of a document, in order. */
function stepsOf({ name, page, isCopied }: ExampleApp): Step[] {
  const text = read(page)
  const section = isCopied ? text.split(/^## /m).find((part) => part.startsWith(`${name}\n`)) : text
  return [...(section ?? '').matchAll(fence)].flatMap(([, notRun, path, language, code = '']) => {
    if (notRun !== undefined) return []
    if (path === undefined) expect([page, language]).toEqual([page, 'sh'])
    return [{ path: path ?? null, code }]
  })
}

describe('examples', () => {
  test('every example is run, and is what its page describes', () => {
    const folders = readdirSync(join(root, 'examples'), { withFileTypes: true }).filter((one) =>
      one.isDirectory(),
    )
    expect(folders.map(({ name }) => name).sort()).toEqual(apps.map(({ name }) => name).sort())
    for (const app of apps.filter(({ isCopied }) => !isCopied)) {
      const described = stepsOf(app).flatMap(({ path, code }) => (path === null ? [] : [[path, code]]))
      expect(described.length).toBeGreaterThan(1)
      for (const [path, code] of described) expect(read(`examples/${app.name}/${path}`)).toBe(code)
    }
  })

  test('the loaders of docs/widgets.md are those of the examples', () => {
    const text = read('docs/widgets.md')
    for (const path of ['astro/src/image-service.js', 'unpic/transformer.js'])
      expect(text).toContain(`\n${read(`examples/${path}`)}\`\`\``)
  })
})

let tarballs: AsyncDisposable & { readonly path: string }
beforeAll(async () => {
  tarballs = await temporaryDirectory()
  if (isComplete) await packApps(tarballs.path)
})
afterAll(() => tarballs[Symbol.asyncDispose]())

/** Makes and starts an app as its document says. Its program is stopped when it is disposed of. */
async function startApp(app: ExampleApp, service: Readonly<Record<string, string>>, port: number) {
  needTools(...app.tools)
  const directory = await temporaryDirectory()
  if (app.isCopied) {
    cpSync(join(root, 'examples', app.name), directory.path, { recursive: true })
    // The packages of this repository, which are not in the registry yet.
    const manifest = join(directory.path, 'package.json')
    writeFileSync(manifest, readFileSync(manifest, 'utf8').replaceAll(/ *"@mediabucket\/\w+": .*\n/g, ''))
  }
  const steps = [...stepsOf(app), ...(app.start === undefined ? [] : [{ path: null, code: app.start }])]
  const last = steps.at(-1)
  // Where Debian installs its programs for Python and Ruby; the machine may have others before them.
  const path = [dirname(process.execPath), '/usr/bin', process.env['PATH']].join(delimiter)
  const variables = {
    ...service,
    PATH: path,
    NEXT_TELEMETRY_DISABLED: '1',
    NUXT_TELEMETRY_DISABLED: '1',
    ASTRO_TELEMETRY_DISABLED: '1',
    npm_config_prefer_offline: 'true',
    npm_config_audit: 'false',
  }
  for (const step of steps) {
    const code = step.code
      .replaceAll('3000', `${port}`)
      .replaceAll('/tmp/mediabucket-', `${tarballs.path}/mediabucket-`)
    if (step.path !== null) {
      mkdirSync(dirname(join(directory.path, step.path)), { recursive: true })
      writeFileSync(join(directory.path, step.path), code)
      continue
    }
    // The last command of a document runs until it is stopped.
    const commands = code.trim().split('\n')
    const program = step === last ? commands.pop() : undefined
    if (commands.length > 0) await runIn(directory.path, variables)('sh', '-ec', commands.join('\n'))
    if (program !== undefined) return await startProgram(directory, program, variables, port)
  }
  throw new Error(`${app.page} does not start the app`)
}

async function startProgram(
  directory: AsyncDisposable & { readonly path: string },
  code: string,
  variables: Readonly<Record<string, string>>,
  port: number,
) {
  const child = spawn('sh', ['-ec', code], {
    cwd: directory.path,
    env: { ...process.env, ...variables },
    // A group of its own, which ends with all programs that the commands start.
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let output = ''
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', (chunk) => {
      output += chunk
    })
  const url = `http://127.0.0.1:${port}`
  const isReady = async () => {
    if (child.exitCode !== null) throw new Error('the app has ended')
    return await fetch(url).then(
      ({ ok }) => ok,
      () => false,
    )
  }
  const stop = async () => {
    if (child.pid !== undefined && child.exitCode === null) process.kill(-child.pid, 'SIGKILL')
    await directory[Symbol.asyncDispose]()
  }
  await until(`the app at ${url}`, isReady).catch(async (error: unknown) => {
    await stop()
    throw new Error(output.slice(0, 2000), { cause: error })
  })
  return { url, [Symbol.asyncDispose]: stop }
}

/** The URL that the browser has chosen for the picture. */
async function chosenUrl(page: Page): Promise<string> {
  const image = page.locator('img')
  await image.scrollIntoViewIfNeeded()
  await expect.poll(() => image.evaluate((one) => Reflect.get(one, 'naturalWidth'))).toBeGreaterThan(0)
  return image.evaluate((one) => `${Reflect.get(one, 'currentSrc')}`)
}

/** Viewports, and the width of the picture that a browser chooses there. A page of 1,200 pixels shows it in a quarter of its width. */
const viewports = [
  { width: 390, density: 1, expected: 400 },
  { width: 390, density: 3, expected: 1600 },
  { width: 1200, density: 1, expected: 400 },
  { width: 1200, density: 2, expected: 1600 },
]

/** Shows the page of an app in each viewport; the picture must be there. Returns the links of all addresses of the picture. */
async function linksShown(url: string, origin: string, prepare: (page: Page) => Promise<void>) {
  const links = new Set<string>()
  for (const { width, density, expected } of viewports) {
    const options = { viewport: { width, height: 900 }, deviceScaleFactor: density }
    const context = await (await sharedBrowser()).newContext(options)
    const page = await context.newPage()
    await page.goto(url, { waitUntil: 'load' })
    if (width === viewports[0]?.width && density === 1) await prepare(page)
    await page.getByRole('img', { name: 'harbour.jpg' }).waitFor()
    const chosen = await chosenUrl(page)
    const { width: pixels } = await sharp(await (await fetch(chosen)).arrayBuffer()).metadata()
    expect([width, density, pixels]).toEqual([width, density, expected])
    expect(new URL(chosen).origin).toBe(origin)
    const srcset = (await page.locator('img').getAttribute('srcset')) ?? ''
    // Without what depends on the width, and on the time of the request.
    for (const candidate of [chosen, ...srcset.split(/,\s+/)])
      links.add(candidate.replace(/[?&]w=\d+.*/, '').replace(/expires=\d+|signature=[\w-]+/g, ''))
    await context.close()
  }
  return [...links]
}

describe.each(apps)('the app $name', (app) => {
  test.runIf(isComplete || !app.isLarge)(
    'V18, H5, H10 uploads a picture, and shows it by one link in the size that the browser chooses, from a public and a private bucket',
    async () => {
      const port = await freePort()
      await using server = await startServer({ MEDIABUCKET_CORS_ORIGINS: `http://127.0.0.1:${port}` })
      const service = { MEDIABUCKET_URL: server.url, MEDIABUCKET_TOKEN: server.token }
      await using running = await startApp(app, service, port)
      const buffer = await quarters(2000, 1000).jpeg().toBuffer()
      const choose = async (page: Page) => {
        const file = { name: 'harbour.jpg', mimeType: 'image/jpeg', buffer }
        await page.locator('input[type=file]').setInputFiles(file)
        // The other one sends files as soon as they are chosen.
        if (app.name !== 'unpic') await page.getByRole('button', { name: 'Upload' }).click()
      }
      const ofPublic = await linksShown(running.url, server.url, choose)
      expect(ofPublic).toEqual([expect.not.stringContaining('?')])
      await server.command('bucket', 'set', 'default', '--private', 'on')
      const ofPrivate = await linksShown(running.url, server.url, async () => undefined)
      expect(ofPrivate).toEqual([expect.stringContaining('variants=all')])
    },
    // Under load, the installation of a framework takes minutes.
    1_200_000,
  )
})
