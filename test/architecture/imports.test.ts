import { expect, test } from 'vitest'
import { circlesAmong, filesBelow, importsOf, loadedAtStart, read, sourcesBelow } from './sources.ts'

const src = 'packages/server/src/'

/** Which folders each may import from; a folder may always import from itself. The features are in the order in which they may use each other. */
const folderImports: Readonly<Record<string, readonly string[]>> = {
  core: [],
  storage: ['core'],
  http: ['storage', 'core'],
  access: ['http', 'storage', 'core'],
  audit: ['http', 'storage', 'core'],
  items: ['access', 'http', 'storage', 'core'],
  pictures: ['http', 'storage', 'core'],
  uploads: ['pictures', 'items', 'http', 'storage', 'core'],
  buckets: ['uploads', 'items', 'access', 'http', 'storage', 'core'],
  listing: ['access', 'http', 'storage', 'core'],
  downloads: ['pictures', 'items', 'access', 'http', 'storage', 'core'],
  objects: ['uploads', 'downloads', 'items', 'access', 'http', 'storage', 'core'],
  s3: ['objects', 'buckets', 'pictures', 'downloads', 'access', 'http', 'storage', 'core'],
  webhooks: ['items', 'access', 'http', 'storage', 'core'],
  feed: ['items', 'access', 'http', 'storage', 'core'],
  upkeep: ['uploads', 'items', 'storage', 'core'],
  service: [
    's3',
    'objects',
    'webhooks',
    'buckets',
    'upkeep',
    'downloads',
    'feed',
    'listing',
    'uploads',
    'pictures',
    'items',
    'audit',
    'access',
    'http',
    'storage',
    'core',
  ],
  cli: ['service', 'upkeep', 'buckets', 'webhooks', 'audit', 'access', 'storage', 'core'],
}

const files = sourcesBelow(src)
const folderOf = (path: string) => path.slice(src.length).split('/')[0] ?? ''

test('tests beside their sources import sources only, and need no set-up', () => {
  const folders = [src, ...['cli', 'client', 'strip-metadata'].map((name) => `packages/${name}/src/`)]
  const tests = folders.flatMap(filesBelow).filter((path) => path.endsWith('.test.ts'))
  expect(tests.length).toBeGreaterThan(30)
  const other = tests.flatMap((path) =>
    importsOf(path)
      .own.filter((target) => !folders.some((folder) => target.startsWith(folder)))
      .map((target) => `${path} → ${target}`),
  )
  expect(other).toEqual([])
})

test('every file is in a known folder', () => {
  expect(files.map(folderOf).filter((folder) => !(folder in folderImports))).toEqual([])
})

test('imports point one way, from the commands down to the core', () => {
  const uphill = files.flatMap((path) =>
    importsOf(path)
      .own.filter((target) => {
        const [from, to] = [folderOf(path), folderOf(target)]
        return !target.startsWith(src) || (from !== to && !folderImports[from]?.includes(to))
      })
      .map((target) => `${path} → ${target}`),
  )
  expect(uphill).toEqual([])
})

test('no operation imports a route', () => {
  const isRoute = (path: string) => /-routes\.ts$/.test(path)
  const features =
    /^packages\/server\/src\/(access|audit|buckets|feed|items|objects|uploads|listing|downloads|pictures|upkeep|webhooks)\//
  const back = files
    .filter((path) => features.test(path) && !isRoute(path))
    .flatMap((path) =>
      importsOf(path)
        .own.filter(isRoute)
        .map((target) => `${path} → ${target}`),
    )
  expect(back).toEqual([])
})

test('only engines.ts imports engines', () => {
  const engine = /^packages\/server\/src\/storage\/(catalog\/engines\/(sqlite|postgres)|blobs\/(disk|s3))\//
  const named = files
    .filter((path) => !engine.test(path) && path !== `${src}storage/engines.ts`)
    .flatMap((path) => importsOf(path).own.filter((target) => engine.test(target)))
  expect(named).toEqual([])
})

/** Which of the others each folder of the catalog may import from. Files that are in none of them are of all nouns. */
const catalogImports: Readonly<Record<string, readonly string[]>> = {
  audit: [],
  access: ['audit'],
  items: ['access', 'audit'],
  lists: ['items'],
  feed: ['items', 'audit'],
  checks: ['objects', 'feed', 'items', 'access', 'audit'],
  objects: ['access', 'audit', 'feed', 'items'],
  engines: ['objects', 'checks', 'feed', 'lists', 'items', 'access', 'audit'],
}

test('the folders of the catalog import one way', () => {
  const catalog = `${src}storage/catalog/`
  const nounOf = (path: string) => (path.startsWith(catalog) ? path.slice(catalog.length).split('/') : [])
  const back = files.flatMap((path) =>
    importsOf(path)
      .own.filter((target) => {
        const [from = '', ...below] = nounOf(path)
        const [to = '', ...targetBelow] = nounOf(target)
        const isBetweenFolders = below.length > 0 && targetBelow.length > 0 && from !== to
        return isBetweenFolders && !catalogImports[from]?.includes(to)
      })
      .map((target) => `${path} → ${target}`),
  )
  expect(back).toEqual([])
})

// knip does not see it, because nouns.ts imports all exports of these files.
test('every export of a noun of the catalog is an operation or is imported', () => {
  const catalog = `${src}storage/catalog/`
  const nouns = importsOf(`${catalog}nouns.ts`).own.filter((path) =>
    /^export const (reads|writes)\b/m.test(read(path)),
  )
  expect(nouns.length).toBeGreaterThan(10)
  const others = ['packages/server/', 'test/', 'bench/'].flatMap(filesBelow)
  const texts = new Map(others.map((path) => [path, read(path)]))
  const unused = nouns.flatMap((noun) => {
    const text = read(noun)
    const tables = text.slice(text.search(/^export const (reads|writes)\b/m))
    const isUsed = (name: string) =>
      tables.includes(name) ||
      [...texts].some(([path, other]) => path !== noun && new RegExp(`\\b${name}\\b`).test(other))
    return [...text.matchAll(/^export (?:const|function\*?|type|interface|class) (\w+)/gm)]
      .map(([, name = '']) => name)
      .filter((name) => !isUsed(name))
      .map((name) => `${noun}: ${name}`)
  })
  expect(unused).toEqual([])
})

test('the environment is read in service/config.ts; --env-file adds to it', () => {
  const reads = files.filter((path) => /\bprocess\.env\b/.test(read(path)))
  expect(reads).toEqual([`${src}service/config.ts`, `${src}service/environment.ts`])
})

test('texts of a row are written to standard output where control characters are replaced', () => {
  const writers = /\bconsole\.|\bprocess\.std(?:out|err)\.write\b|\bprocess\.stdout(?!\.isTTY| })/
  expect(files.filter((path) => /\/cli\//.test(path) && writers.test(read(path)))).toEqual([
    'packages/server/src/cli/main.ts',
    // The banner, which has colours.
    'packages/server/src/cli/serve.ts',
  ])
})

test('the commands of the server import the command line, its other folders only the names that are near to others and the type of what an agent sends; no other file imports the client', () => {
  const users = files.flatMap((path) =>
    importsOf(path)
      .foreign.filter((name) => name === '@mediabucket/client' || name.startsWith('@mediabucket/cli/'))
      .map((name) => `${path} → ${name}`),
  )
  expect(users.filter((use) => !use.startsWith(`${src}cli/`))).toEqual([
    `${src}service/config.ts → @mediabucket/cli/nearest-name`,
    // A type.
    `${src}service/mcp-routes.ts → @mediabucket/cli/mcp-http`,
  ])
  const ofClient = users.filter((use) => use.endsWith('@mediabucket/client'))
  expect(ofClient.filter((use) => !use.startsWith(`${src}cli/admin/`))).toEqual([])
  expect(users.length).toBeGreaterThan(20)
})

test('only uploads and what reads pictures import the removal of metadata', () => {
  const users = files.filter((path) => importsOf(path).foreign.includes('@mediabucket/strip-metadata'))
  expect(users).not.toEqual([])
  expect(users.filter((path) => !['pictures', 'uploads'].includes(folderOf(path)))).toEqual([])
})

test('no import cycle, including type imports', () => {
  expect(circlesAmong(files)).toEqual([])
})

// Its 700 files would take half of the time in which a command or a thread starts from the sources.
test('the command line and the threads do not load the schema library when they start', () => {
  const starts = files.filter((path) => /\/cli\/main\.ts$|-thread\.ts$|picture-worker\.ts$/.test(path))
  expect(starts.length).toBeGreaterThanOrEqual(6)
  const found = starts.filter((path) => [...loadedAtStart(path)].some((name) => /^typebox\b/.test(name)))
  expect(found).toEqual([])
  expect(loadedAtStart(`${src}service/start.ts`)).toContain('typebox')
})

// The reason is in core/node-http.ts.
test('node:http is not imported but read with process.getBuiltinModule', () => {
  const loaded = new Set<string>()
  for (const path of files) loadedAtStart(path, loaded)
  expect(loaded).toContain('node:https')
  expect(loaded).not.toContain('node:http')
})

test('the core does no I/O', () => {
  const io = /^node:(?!buffer$|crypto$|zlib$)/
  const found = files
    .filter((path) => folderOf(path) === 'core')
    .flatMap((path) =>
      importsOf(path)
        .foreign.filter((name) => io.test(name))
        .map((name) => `${path} → ${name}`),
    )
  expect(found).toEqual([])
})

test('one file of the server uses private fields of Node', () => {
  const uses = /\b_header\b|\b_headerSent\b|\bonIncoming\b|\bwriteQueueSize\b|\b_handle\b/
  expect(files.filter((path) => uses.test(read(path)))).toEqual([`${src}http/client-connections.ts`])
})
