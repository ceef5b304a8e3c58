import { expect, test } from 'vitest'
import { filesBelow, importsOf, read } from './sources.ts'

const src = 'packages/server/src/'

/** Which rooms each room may import from; a room may always import from itself. */
const arrows: Readonly<Record<string, readonly string[]>> = {
  core: [],
  files: ['core'],
  threads: ['core'],
  sqlite: ['core'],
  catalog: ['sqlite', 'files', 'threads', 'core'],
  blobs: ['sqlite', 'files', 'threads', 'core'],
  access: ['catalog', 'core'],
  media: ['catalog', 'blobs', 'core'],
  upkeep: ['media', 'catalog', 'blobs', 'files', 'core'],
  http: ['media', 'access', 'catalog', 'blobs', 'core'],
  config: ['core'],
  'engines.ts': ['catalog', 'blobs', 'config', 'core'],
  server: ['http', 'media', 'access', 'catalog', 'blobs', 'core', 'config', 'engines.ts'],
  cli: ['server', 'engines.ts', 'config', 'upkeep', 'access', 'catalog', 'core'],
}

/** Which siblings each folder inside `http/` and `media/` may import from. Files beside the folders may import from all of them. */
const innerArrows: Readonly<Record<string, Readonly<Record<string, readonly string[]>>>> = {
  http: {
    headers: [],
    metrics: [],
    bodies: [],
    limits: ['metrics'],
    problems: ['limits'],
    connections: ['bodies', 'limits', 'metrics', 'problems'],
    openapi: ['headers', 'problems'],
    tokens: ['headers', 'limits', 'openapi'],
    listing: ['headers', 'limits', 'metrics', 'openapi', 'problems', 'tokens'],
    forms: ['bodies', 'headers'],
    uploads: ['bodies', 'headers', 'metrics', 'openapi', 'tokens'],
    media: ['bodies', 'forms', 'headers', 'listing', 'metrics', 'openapi', 'tokens'],
    gallery: ['headers', 'media'],
  },
  media: {
    deletion: ['find-media.ts'],
    listing: [],
    pictures: ['find-media.ts'],
    space: [],
    uploads: ['new-item.ts', 'pictures'],
  },
}

const files = filesBelow(src)
const roomOf = (path: string) => path.slice(src.length).split('/')[0] ?? ''

test('every file is in a known room', () => {
  expect(files.map(roomOf).filter((room) => !(room in arrows))).toEqual([])
})

test('imports point one way, from the command line down to the core', () => {
  const uphill = files.flatMap((path) =>
    importsOf(path)
      .own.filter((target) => {
        const [from, to] = [roomOf(path), roomOf(target)]
        return !target.startsWith(src) || (from !== to && !arrows[from]?.includes(to))
      })
      .map((target) => `${path} → ${target}`),
  )
  expect(uphill).toEqual([])
})

test('imports between the folders of a room point one way', () => {
  const partsOf = (path: string) => path.slice(src.length).split('/')
  const uphill = files.flatMap((path) => {
    const [room = '', folder = '', ...rest] = partsOf(path)
    const order = innerArrows[room]
    if (order === undefined || rest.length === 0) return []
    return importsOf(path)
      .own.filter((target) => {
        const [targetRoom, sibling = ''] = partsOf(target)
        return targetRoom === room && sibling !== folder && !order[folder]?.includes(sibling)
      })
      .map((target) => `${path} → ${target}`)
  })
  expect(uphill).toEqual([])
  const folders = files
    .map(partsOf)
    .filter(([room = '', , file]) => room in innerArrows && file !== undefined)
  expect(folders.filter(([room = '', folder = '']) => !innerArrows[room]?.[folder])).toEqual([])
})

test('only engines.ts imports engines', () => {
  const engine = /^packages\/server\/src\/(catalog\/sqlite|blobs\/disk)\//
  const named = files
    .filter((path) => !engine.test(path) && roomOf(path) !== 'engines.ts')
    .flatMap((path) => importsOf(path).own.filter((target) => engine.test(target)))
  expect(named).toEqual([])
})

test('the environment is read in config/config.ts, and in one file for the commands that talk to a service', () => {
  const reads = files.filter((path) => /\bprocess\.env\b/.test(read(path)))
  expect(reads).toEqual([
    'packages/server/src/cli/client/client-settings.ts',
    'packages/server/src/config/config.ts',
  ])
})

test('commands that call a service import the client and nothing of the server; no other file imports the client', () => {
  const remote = /^packages\/server\/src\/cli\/client\//
  const near = /^packages\/server\/src\/cli\/(client\/|arguments\.ts|command\.ts|table\.ts)/
  const strangers = files
    .filter((path) => remote.test(path))
    .flatMap((path) => importsOf(path).own.filter((target) => !near.test(target)))
  expect(strangers).toEqual([])
  const users = files.filter((path) => importsOf(path).foreign.includes('@mediabucket/client'))
  expect(users.filter((path) => !remote.test(path))).toEqual([])
  expect(users).not.toEqual([])
})

test('no import cycle, including type imports', () => {
  const circles: string[] = []
  const state = new Map<string, 'open' | 'done'>()
  const visit = (path: string, trail: readonly string[]): void => {
    if (state.get(path) === 'done') return
    if (state.get(path) === 'open') {
      circles.push([...trail.slice(trail.indexOf(path)), path].join(' → '))
      return
    }
    state.set(path, 'open')
    for (const target of importsOf(path).own) visit(target, [...trail, path])
    state.set(path, 'done')
  }
  for (const path of files) visit(path, [])
  expect(circles).toEqual([])
})

test('the core does no I/O', () => {
  const io = /^node:(?!crypto$|zlib$)/
  const found = files
    .filter((path) => roomOf(path) === 'core')
    .flatMap((path) =>
      importsOf(path)
        .foreign.filter((name) => io.test(name))
        .map((name) => `${path} → ${name}`),
    )
  expect(found).toEqual([])
})
