import { expect, test } from 'vitest'
import { circlesAmong, filesBelow, importsOf, loadedAtStart, read, sourcesBelow } from './sources.ts'

const src = 'packages/server/src/'

/** Which top-level folders each may import from; a folder may always import from itself. `engines.ts` counts as a folder. */
const folderImports: Readonly<Record<string, readonly string[]>> = {
  core: [],
  files: ['core'],
  threads: ['core'],
  sqlite: ['core'],
  catalog: ['sqlite', 'files', 'threads', 'core'],
  blobs: ['sqlite', 'files', 'threads', 'core'],
  access: ['catalog', 'core'],
  media: ['catalog', 'blobs', 'core'],
  upkeep: ['media', 'catalog', 'blobs', 'files', 'core'],
  http: ['media', 'access', 'catalog', 'blobs', 'core', 'config'],
  config: ['core'],
  'engines.ts': ['catalog', 'blobs', 'config', 'core'],
  server: ['http', 'upkeep', 'media', 'access', 'catalog', 'blobs', 'core', 'config', 'engines.ts'],
  cli: ['server', 'engines.ts', 'config', 'upkeep', 'access', 'catalog', 'core'],
}

/** Which siblings each folder inside `http/` and `media/` may import from. Files beside the folders may import from all of them. */
const innerFolderImports: Readonly<Record<string, Readonly<Record<string, readonly string[]>>>> = {
  http: {
    headers: [],
    metrics: [],
    bodies: ['node-internals.ts'],
    limits: ['headers', 'metrics'],
    problems: ['headers', 'limits', 'metrics'],
    connections: ['node-internals.ts', 'bodies', 'limits', 'metrics', 'problems'],
    openapi: ['headers', 'problems'],
    forms: ['bodies', 'headers'],
    routing: ['bodies', 'connections', 'headers', 'limits', 'metrics', 'openapi', 'problems'],
    tokens: ['context.ts', 'bodies', 'openapi', 'routing'],
    listing: ['context.ts', 'operations.ts', 'bodies', 'headers', 'limits', 'openapi', 'routing'],
    items: ['context.ts', 'operations.ts', 'headers', 'openapi', 'routing'],
    uploads: ['context.ts', 'operations.ts', 'bodies', 'headers', 'openapi', 'routing'],
    media: ['context.ts', 'operations.ts', 'bodies', 'forms', 'headers', 'listing', 'openapi', 'routing'],
    gallery: ['context.ts', 'headers', 'routing'],
  },
  media: {
    caching: ['open-bytes.ts', 'pictures'],
    deletion: ['find-media.ts'],
    items: [],
    listing: [],
    pictures: ['find-media.ts', 'receive-files.ts'],
    space: [],
    uploads: ['new-item.ts', 'pictures', 'receive-files.ts'],
  },
}

const files = sourcesBelow(src)
const folderOf = (path: string) => path.slice(src.length).split('/')[0] ?? ''

test('tests beside their sources import sources only, and need no set-up', () => {
  const folders = [src, 'packages/client/src/']
  const tests = folders.flatMap(filesBelow).filter((path) => path.endsWith('.test.ts'))
  expect(tests.length).toBeGreaterThan(40)
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

test('imports point one way, from the command line down to the core', () => {
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

test('imports between the folders inside http/ and media/ point one way', () => {
  const partsOf = (path: string) => path.slice(src.length).split('/')
  const uphill = files.flatMap((path) => {
    const [top = '', folder = '', ...rest] = partsOf(path)
    const allowed = innerFolderImports[top]
    if (allowed === undefined || rest.length === 0) return []
    return importsOf(path)
      .own.filter((target) => {
        const [targetTop, sibling = ''] = partsOf(target)
        return targetTop === top && sibling !== folder && !allowed[folder]?.includes(sibling)
      })
      .map((target) => `${path} → ${target}`)
  })
  expect(uphill).toEqual([])
  const folders = files
    .map(partsOf)
    .filter(([top = '', , file]) => top in innerFolderImports && file !== undefined)
  expect(folders.filter(([top = '', folder = '']) => !innerFolderImports[top]?.[folder])).toEqual([])
})

test('only engines.ts imports engines', () => {
  const engine = /^packages\/server\/src\/(catalog\/(sqlite|postgres)|blobs\/(disk|s3))\//
  const named = files
    .filter((path) => !engine.test(path) && folderOf(path) !== 'engines.ts')
    .flatMap((path) => importsOf(path).own.filter((target) => engine.test(target)))
  expect(named).toEqual([])
})

test('the environment is read in config/config.ts, and in one file for the commands that talk to a service; --env-file adds to it', () => {
  const reads = files.filter((path) => /\bprocess\.env\b/.test(read(path)))
  expect(reads).toEqual([
    'packages/server/src/cli/client/client-settings.ts',
    'packages/server/src/config/config.ts',
    'packages/server/src/config/env-file.ts',
  ])
})

test('texts of a service or of a row are written to standard output where control characters are replaced', () => {
  const writers = /\bconsole\.|\bprocess\.std(?:out|err)\.write\b|\bprocess\.stdout(?!\.isTTY| })/
  expect(files.filter((path) => /\/cli\//.test(path) && writers.test(read(path)))).toEqual([
    'packages/server/src/cli/client/output.ts',
    'packages/server/src/cli/main.ts',
    // The banner, which has colours.
    'packages/server/src/cli/serve.ts',
  ])
})

test('commands that call a service import the client and nothing of the server; no other file imports the client', () => {
  const clientCommand = /^packages\/server\/src\/cli\/client\//
  const allowedImport =
    /^packages\/server\/src\/cli\/(client\/|arguments\.ts|command\.ts|processes\.ts|table\.ts)/
  const forbidden = files
    .filter((path) => clientCommand.test(path))
    .flatMap((path) => importsOf(path).own.filter((target) => !allowedImport.test(target)))
  expect(forbidden).toEqual([])
  const users = files.filter((path) => importsOf(path).foreign.includes('@mediabucket/client'))
  expect(users.filter((path) => !clientCommand.test(path))).toEqual([])
  expect(users).not.toEqual([])
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
  expect(loadedAtStart(`${src}server/start-server.ts`)).toContain('typebox')
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
