import { createHash } from 'node:crypto'
import { readdir, readFile, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { rolldown } from 'rolldown'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { runIn } from '../../release/pack.ts'
import { createTree } from '../../release/tree.ts'
import { root } from '../architecture/sources.ts'
import { blocksOf } from '../docs/blocks.ts'
import { bundleScript, serveBundledPages } from '../harness/bundled-page.ts'
import { sharedBrowser } from '../harness/chromium.ts'
import { temporaryDirectory } from '../harness/directory.ts'
import { quarters, uploadPicture, variantUrl } from '../harness/pictures.ts'
import { startServer, type TestServer } from '../harness/server.ts'
import { upload } from '../harness/upload.ts'
import { startWatchedProxy } from '../harness/watched-proxy.ts'
import { commandInRoot, createBareRoot } from '../release/bare-root.ts'
import { startCommand, useService } from '../release/service.ts'
import { type Installed, installPackages } from './installed.ts'

let installed: Installed
/** The installed server with its default settings. */
let server: TestServer
beforeAll(async () => {
  installed = await installPackages()
  server = await startServer({}, undefined, programOf(installed))
}, 600_000)
afterAll(async () => {
  expect(await server?.stop()).toBe(0)
  await server?.[Symbol.asyncDispose]()
  await installed?.[Symbol.asyncDispose]()
})

const tool = (name: string) => join(root, 'node_modules/.bin', name)
const programOf = ({ project }: Installed) => join(project, 'node_modules/mediabucket/bin/mediabucket.js')

test.each(['server', 'client', 'stripMetadata', 'gallery', 'react', 'vue'] as const)(
  'publint and attw find nothing in the package of the %s',
  async (name) => {
    const tarball = installed.tarballs[name]
    const lint = await installed.run(tool('publint'), 'run', tarball, '--strict')
    expect(lint.stdout).toContain('All good!')
    // Resolved also by "moduleResolution": "node" of TypeScript, which does not read "exports".
    const profile = name === 'client' ? ['--ignore-rules', 'cjs-resolves-to-esm'] : ['--profile', 'esm-only']
    await installed.run(tool('attw'), tarball, ...profile)
  },
)

test('the bill of materials names each installed package with its version and hash, and what is bundled', async () => {
  const bill = JSON.parse(await installed.billOfMaterials())
  expect(bill).toMatchObject({ bomFormat: 'CycloneDX', metadata: { component: { name: 'mediabucket' } } })
  const components: { name: string; version: string; hashes?: unknown[] }[] = bill.components
  const known = new Set(components.map(({ name, version }) => `${name}@${version}`))
  const { stdout } = await installed.run('npm', 'query', '*')
  const packages: { name: string; version: string }[] = JSON.parse(stdout)
  const names = packages.map(({ name, version }) => `${name}@${version}`)
  const own = names.filter((name) => /^(empty|mediabucket)@/.test(name))
  expect(names.length).toBeGreaterThan(4)
  expect(names.filter((name) => !known.has(name))).toEqual(own)
  expect(components.map(({ name }) => name)).toEqual(
    expect.arrayContaining(['preact', 'photoswipe', 'client-zip', '@aws-sdk/client-s3', 'pino']),
  )
  expect(components.map(({ name }) => name)).toEqual(
    expect.arrayContaining(['@mediabucket/react', '@mediabucket/vue']),
  )
  expect(components.map(({ name }) => name)).not.toContain('react')
  const notices = await readFile(
    join(installed.project, 'node_modules/mediabucket/dist/THIRD-PARTY-NOTICES.txt'),
    'utf8',
  )
  const noticed = [...notices.matchAll(/^(\S+) (\d+\.\d+\.\d+) \(([^)]+)\)$/gm)]
  const byName = Map.groupBy(components, ({ name, version }) => `${name}@${version}`)
  expect(noticed.filter(([, name, version]) => !byName.has(`${name}@${version}`))).toEqual([])
  expect(noticed.length).toBeGreaterThan(50)
  const texts = notices.split(/^-{80}$/m).slice(1)
  // The text of Apache-2.0 is the same for all packages.
  expect(texts.filter((text) => text.trim().length < 200 && !text.includes('(Apache-2.0)'))).toEqual([])
  expect(components.filter(({ hashes }) => !hashes?.length)).toEqual([])
  expect(JSON.stringify(bill)).not.toContain(installed.project)
})

test('the packages contain built code, licence and README; the server is one bundle that depends on what cannot be bundled', async () => {
  const listing = async (tarball: string) =>
    (await installed.run('tar', 'tzf', tarball)).stdout.trim().split('\n').sort()
  const server = await listing(installed.tarballs.server)
  for (const name of [
    'LICENSE',
    'README.md',
    'bin/mediabucket.js',
    'dist/THIRD-PARTY-NOTICES.txt',
    'dist/main.js',
    'dist/picture-worker.js',
    'dist/serve-worker.js',
    'dist/writer-thread.js',
  ])
    expect(server).toContain(`package/${name}`)
  expect(
    server.filter(
      (name) =>
        !/^package\/(bin\/|dist\/[^/]*\.js$|dist\/THIRD-PARTY-NOTICES\.txt$|LICENSE$|README\.md$|CHANGELOG\.md$|docs\/|package\.json$)/.test(
          name,
        ),
    ),
  ).toEqual([])
  const dist = join(installed.project, 'node_modules/mediabucket/dist')
  const code = await Promise.all(
    (await readdir(dist))
      .filter((name) => name.endsWith('.js'))
      .map((name) => readFile(join(dist, name), 'utf8')),
  )
  // Such an import loads more modules of Node.js than it names: packages/server/build.ts.
  expect(code.join('').match(/\bfrom ?["'`]node:[\w/]+/g)).toBeNull()
  const { client, stripMetadata, react, vue } = installed.tarballs
  for (const tarball of [client, stripMetadata, react, vue])
    expect(await listing(tarball)).toEqual(
      expect.arrayContaining([
        'package/LICENSE',
        'package/README.md',
        'package/dist/index.d.ts',
        'package/dist/index.js',
      ]),
    )
  const manifest = async (path: string) => JSON.parse(await readFile(path, 'utf8'))
  const gallery = await manifest(join(root, 'packages/gallery/package.json'))
  const { dependencies, engines } = await manifest(
    join(installed.project, 'node_modules/mediabucket/package.json'),
  )
  expect(Object.keys(dependencies)).toEqual(['@mediabucket/gallery', 'sharp'])
  expect([dependencies['@mediabucket/gallery'], engines.node]).toEqual([
    `^${gallery.version}`,
    '^24.20 || >=26.7',
  ])
})

/** The files of a bundle that one of them loads at its start, itself included. */
async function loadedWith(
  dist: string,
  name: string,
  seen = new Set<string>(),
): Promise<ReadonlySet<string>> {
  if (seen.has(name)) return seen
  seen.add(name)
  const code = await readFile(join(dist, name), 'utf8')
  for (const [, next = ''] of code.matchAll(/(?:from|import) ?["'`]\.\/([\w-]+\.js)["'`]/g))
    await loadedWith(dist, next, seen)
  return seen
}

/** The file with a command. A chunk that several files share may have the name of its source. */
async function fileOfCommand(dist: string, name: string): Promise<string> {
  const files = (await readdir(dist)).filter((file) => new RegExp(`^${name}\\d*\\.js$`).test(file))
  const codes = await Promise.all(files.map((file) => readFile(join(dist, file), 'utf8')))
  const found = files[codes.findIndex((code) => code.includes('Usage: mediabucket '))]
  if (found === undefined) throw new Error(`no file of ${dist} has the command of ${name}`)
  return found
}

test('commands that call a service load no code of the catalog and the storage', async () => {
  const dist = join(installed.project, 'node_modules/mediabucket/dist')
  for (const name of ['get', 'items', 'login', 'ls', 'sync', 'upload']) {
    const loaded = await loadedWith(dist, await fileOfCommand(dist, name))
    expect(loaded, name).toContain('every-command.js')
    expect(loaded, name).not.toContain('data.js')
  }
  expect(await loadedWith(dist, 'bucket-commands.js')).toContain('data.js')
})

test('the installed server serves, and its commands upload, list and fetch', async () => {
  await writeFile(join(installed.project, 'file.txt'), 'from the tarball')
  const settings = [`MEDIABUCKET_URL=${server.url}`, `MEDIABUCKET_TOKEN=${server.token}`]
  const command = (...args: string[]) =>
    installed.run('env', ...settings, 'npx', '--no-install', 'mediabucket', ...args)
  const [url] = (await command('upload', 'file.txt')).stdout.split('\t')
  expect((await command('ls')).stdout.split('\n')).toContain(url)
  expect((await command('get', url ?? '')).stdout).toBe('from the tarball')
})

test('G1 the installed server serves the gallery, built and compressed', async () => {
  const names = (await installed.run('tar', 'tzf', installed.tarballs.gallery)).stdout.trim().split('\n')
  const others = /^package\/(dist\/|LICENSE$|README\.md$|package\.json$)/
  expect(names.filter((name) => !others.test(name))).toEqual([])
  const page = await fetch(server.url)
  const script = /src="\.(\/assets\/[^"]+\.js)"/.exec(await page.text())?.[1] ?? ''
  const response = await fetch(server.url + script, { headers: { 'accept-encoding': 'br' } })
  expect([response.status, response.headers.get('content-encoding')]).toEqual([200, 'br'])
})

test('V1, V8 the installed server reads the dimensions of pictures and generates variants', async () => {
  const { id, width } = await uploadPicture(server, quarters(60, 40).png().toBuffer(), 'image/png')
  const { status, headers } = await fetch(variantUrl(server, id))
  expect([width, status, headers.get('content-type')]).toEqual([60, 200, 'image/webp'])
})

test('the installed client works in Node.js', async () => {
  const { stdout } = await installed.run(process.execPath, 'in-node.js', server.url, server.token)
  expect(JSON.parse(stdout)).toEqual({ bucket: 'default', filename: 'node.txt', text: 'from node' })
})

const isRootOnLinux = process.platform === 'linux' && process.getuid?.() === 0
// `npm run test:release` tests the archive itself, and all else that is published.
test.skipIf(!isRootOnLinux)(
  'what the archive contains runs in a root directory without Node.js',
  async () => {
    await using machine = await temporaryDirectory()
    const tree = join(machine.path, 'opt/mediabucket')
    await createTree(tree, process.arch === 'arm64' ? 'arm64' : 'x64', installed.tarballs)
    await createBareRoot(machine.path, tree)
    const command = commandInRoot(machine.path, ['/opt/mediabucket/bin/mediabucket', 'serve'])
    await using service = await startCommand(command, { HOME: '/', MEDIABUCKET_DATA: '/data' })
    await useService(service)
  },
)

test('the app of the README of the package for React uploads and lists with React 18, from what npm installs', async () => {
  await using directory = await temporaryDirectory()
  await writeFile(join(directory.path, 'package.json'), '{ "name": "app", "private": true }')
  const { client, react } = installed.tarballs
  const options = ['--prefer-offline', '--no-audit', '--no-fund']
  await runIn(directory.path)('npm', 'install', client, react, 'react@18', 'react-dom@18', ...options)
  const code = blocksOf('packages/react/README.md').find(({ language }) => language === 'jsx')?.code ?? ''
  const script = await bundleScript({ directory: directory.path, name: 'app.jsx', code })
  await using pages = await serveBundledPages()
  await using open = await startServer(
    { MEDIABUCKET_CORS_ORIGINS: pages.origin },
    undefined,
    programOf(installed),
  )
  await using opened = await pages.open(script, { url: open.url, token: open.token })
  const buffer = await quarters(60, 40).png().toBuffer()
  await opened.page
    .locator('input[type=file]')
    .setInputFiles({ name: 'one.png', mimeType: 'image/png', buffer })
  await opened.page.locator('output', { hasText: 'done' }).waitFor()
  await opened.page.getByRole('img', { name: 'one.png' }).waitFor()
})

let pageScript: Promise<string> | null = null

async function bundlePage({ project }: Installed): Promise<string> {
  const bundle = await rolldown({ input: join(project, 'in-page.js'), platform: 'browser' })
  const { output } = await bundle.generate({ format: 'esm' })
  await bundle.close()
  return output[0].code
}

/** A page with the bundled client, at its own origin. */
async function servePage(from: Installed) {
  pageScript ??= bundlePage(from)
  const script = await pageScript
  const server = createServer((request, response) => {
    const isScript = request.url === '/page.js'
    response.writeHead(200, { 'content-type': isScript ? 'text/javascript' : 'text/html' })
    response.end(isScript ? script : '<!doctype html><script type="module" src="/page.js"></script>')
  })
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
  const { port } = server.address() as AddressInfo
  return {
    origin: `http://127.0.0.1:${port}`,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await new Promise((done) => server.close(done))
    },
  }
}

test('C1, C2 the bundled client lists, uploads with progress, downloads and deletes in a browser, from another origin', async () => {
  await using page = await servePage(installed)
  await using open = await startServer(
    { MEDIABUCKET_CORS_ORIGINS: page.origin },
    undefined,
    programOf(installed),
  )
  await upload(open, 'there before')
  const browser = await sharedBrowser()
  const tab = await browser.newPage()
  await tab.goto(page.origin)
  const seen = await tab.evaluate(`tryOut(${JSON.stringify(open.url)}, ${JSON.stringify(open.token)})`)
  expect(seen).toMatchObject({
    before: 1,
    media: { filename: 'Möwe.bin', size: 3_000_000 },
    listed: 2,
    isListed: true,
    same: true,
    gone: 'ProblemError media-unknown',
    after: 1,
  })
  expect(seen).toMatchObject({ progress: expect.arrayContaining([[3_000_000, 3_000_000]]) })

  // A service without this origin in its settings refuses the same page.
  const refused = tab.evaluate(`tryOut(${JSON.stringify(server.url)}, ${JSON.stringify(server.token)})`)
  await expect(refused).rejects.toThrow('The connection to the service failed')
})

const largeFile = Buffer.from(new Uint8Array(20_000_000).map((_, index) => index % 251))
const chunkSize = 8 * 1024 * 1024

test.each(['127.0.0.1', 'gallery.test'])(
  'C2, R6 in a browser, the upload of a large file is resumed after its page was closed, from the origin http://%s',
  async (host) => {
    await using page = await servePage(installed)
    const origin = page.origin.replace('127.0.0.1', host)
    await using server = await startServer(
      { MEDIABUCKET_CORS_ORIGINS: origin },
      undefined,
      programOf(installed),
    )
    await using proxy = await startWatchedProxy(() => server.url)
    const browser = await sharedBrowser()
    const context = await browser.newContext()
    const sendLarge = `sendLarge(${JSON.stringify(proxy.url)}, ${JSON.stringify(server.token)})`
    const open = async () => {
      const tab = await context.newPage()
      await tab.goto(origin)
      return tab
    }

    const reached = proxy.hold(({ offset, bytes }) => offset === 2 * chunkSize && bytes > 1_000_000)
    const first = await open()
    const closed = first.evaluate(sendLarge).catch(() => 'closed')
    await reached
    await first.close()
    expect(await closed).toBe('closed')
    proxy.passed.length = 0

    const seen = await (await open()).evaluate(sendLarge)
    expect(seen).toMatchObject({
      media: { size: largeFile.length, sha256: createHash('sha256').update(largeFile).digest('hex') },
      sent: expect.arrayContaining([largeFile.length]),
      kept: 0,
      isSecure: host === '127.0.0.1',
    })
    expect(seen).toHaveProperty('sent[0]', proxy.chunks()[0]?.offset)
    // Without checksums, which need a secure page, the received bytes of the third chunk are stored too.
    expect(proxy.chunks()[0]?.offset).toBeGreaterThanOrEqual(2 * chunkSize)
    expect(proxy.chunks().reduce((sum, one) => sum + one.bytes, 0)).toBeLessThanOrEqual(
      largeFile.length - 2 * chunkSize,
    )
    const listed = await server.request('/api/media')
    expect(await listed.json()).toMatchObject({ total: 1 })
  },
)
