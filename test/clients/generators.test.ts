import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { chmod, mkdir, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { promisify } from 'node:util'
import { rolldown } from 'rolldown'
import { expect, test } from 'vitest'
import { root } from '../architecture/sources.ts'
import { temporaryDirectory } from '../harness/directory.ts'
import { startServer } from '../harness/server.ts'
import { isComplete } from './install.ts'

const run = promisify(execFile)

/** A generator of clients as docs/generated-clients.md describes it: the command, the files of its settings, and a module that uploads with the client. */
const section = /^## (.+)\n([\s\S]*?)```sh\n([\s\S]*?)```\n\n(?:[^`\n].*\n\n)?```ts\n([\s\S]*?)```$/gm

const generators = readFileSync(join(root, 'docs/generated-clients.md'), 'utf8')
  .split(/^(?=## )/m)
  .flatMap((text) => [...text.matchAll(section)])
  .map(([, name = '', settings = '', command = '', code = '']) => ({
    name,
    settings: [...settings.matchAll(/^`(\S+)`:\n\n```ts\n([\s\S]*?)```$/gm)].map(
      ([, file = '', content = '']) => ({ file, content }),
    ),
    command,
    code,
  }))

/** What is the same with every generated client. */
const rest = `
import { upload } from './upload'

const page = { page: 1, per_page: 1 }
const newest = { order: 'newest', limit: 2 } as const

export async function run(baseUrl: string, token: string) {
  const id = await upload(baseUrl, token)
  const listed = await list(baseUrl, token)
  await remove(id)
  return { ...listed, problem: await problemOf(id) }
}`

/** The rest of a module for each generator: it lists, deletes, and reads the problem of an item that does not exist. */
const modules: Readonly<Record<string, string>> = {
  'openapi-typescript and openapi-fetch': `
import createClient from 'openapi-fetch'
import type { paths } from './api'

let client: ReturnType<typeof createClient<paths>>

async function list(baseUrl: string, token: string) {
  client = createClient<paths>({ baseUrl, headers: { Authorization: 'Bearer ' + token } })
  const listing = await client.GET('/api/media')
  const items = await client.GET('/api/items', { params: { query: newest } })
  const numbered = await client.GET('/api/items', { params: { query: page } })
  return {
    total: listing.data?.total,
    names: items.data?.data.map(({ filename }) => filename),
    pages: numbered.data && 'meta' in numbered.data ? numbered.data.meta.last_page : null,
  }
}
const remove = (id: string) => client.DELETE('/api/media/{id}', { params: { path: { id } } })
const problemOf = async (id: string) =>
  (await client.GET('/api/media/{id}', { params: { path: { id } } })).error?.code`,

  '@hey-api/openapi-ts': `
import { findMedia, listItems, listMedia, removeMedia } from './api'

async function list(_baseUrl: string, _token: string) {
  const listing = await listMedia()
  const items = await listItems({ query: newest })
  const numbered = await listItems({ query: page })
  return {
    total: listing.data?.total,
    names: items.data?.data.map(({ filename }) => filename),
    pages: numbered.data && 'meta' in numbered.data ? numbered.data.meta.last_page : null,
  }
}
const remove = (id: string) => removeMedia({ path: { id } })
const problemOf = async (id: string) => (await findMedia({ path: { id } })).error?.code`,

  orval: `
import { findMedia, listItems, listMedia, removeMedia } from './api'

let options: RequestInit = {}

async function list(_baseUrl: string, token: string) {
  options = { headers: { Authorization: 'Bearer ' + token } }
  const listing = await listMedia({}, options)
  const items = await listItems(newest, options)
  const numbered = await listItems(page, options)
  return {
    total: listing.status === 200 ? listing.data.total : 0,
    names: items.status === 200 ? items.data.data.map(({ filename }) => filename) : [],
    pages: numbered.status === 200 && 'meta' in numbered.data ? numbered.data.meta.last_page : null,
  }
}
const remove = (id: string) => removeMedia(id, options)
async function problemOf(id: string) {
  const missing = await findMedia(id, {}, options)
  return missing.status === 404 ? missing.data.code : ''
}`,

  kubb: `
import { findMedia, listItems, listMedia, removeMedia } from './api'

async function list(_baseUrl: string, _token: string) {
  const listing = await listMedia()
  const items = await listItems(newest)
  const numbered = await listItems(page)
  return {
    total: listing.data.total,
    names: items.data.data.map(({ filename }) => filename),
    pages: 'meta' in numbered.data ? numbered.data.meta.last_page : null,
  }
}
const remove = (id: string) => removeMedia(id)
async function problemOf(id: string) {
  const missing = await findMedia(id)
  return missing.status === 404 && 'code' in missing.data ? missing.data.code : ''
}`,
}

/** These take most of the time to install (optionalDependencies of package.json). */
const late = ['orval', 'kubb']

/** The programs of packages that have another name. */
const programs = { '@hey-api/openapi-ts': 'openapi-ts', '@kubb/cli': 'kubb' }

/** Runs the program of a package as npx does, but without npm, which takes a second of CPU time. */
const npx = `#!/bin/sh
program=$1
${Object.entries(programs)
  .map(([name, program]) => `[ $1 = ${name} ] && program=${program}`)
  .join('\n')}
shift
exec "${process.execPath}" "$(dirname "$0")/../node_modules/.bin/$program" "$@"
`

const compilerOptions = {
  strict: true,
  allowImportingTsExtensions: true,
  noEmit: true,
  skipLibCheck: false,
  target: 'es2022',
  lib: ['es2022', 'dom', 'dom.iterable'],
  module: 'esnext',
  moduleResolution: 'bundler',
  types: [],
}

test.each(generators.filter(({ name }) => isComplete || !late.includes(name)))(
  'D1 the client that $name generates compiles, uploads, lists, reads a numbered page, deletes and reads a problem',
  async ({ name, settings, command, code }) => {
    await using server = await startServer()
    await using directory = await temporaryDirectory()
    const path = (...names: string[]) => join(directory.path, ...names)
    await symlink(join(import.meta.dirname, 'node_modules'), path('node_modules'))
    await mkdir(path('bin'))
    await writeFile(path('bin/npx'), npx)
    await chmod(path('bin/npx'), 0o755)
    for (const { file, content } of settings) await writeFile(path(file), content)
    const env = { PATH: `${path('bin')}:${process.env['PATH']}`, HOME: directory.path, URL: server.url }
    await run('sh', ['-ec', command], { cwd: directory.path, env })

    await writeFile(path('upload.ts'), code)
    await writeFile(path('use.ts'), `${rest}\n${modules[name]}\n`)
    await writeFile(path('tsconfig.json'), JSON.stringify({ compilerOptions, files: ['use.ts'] }))
    const compiled = await run(join(root, 'node_modules/.bin/tsc'), [], { cwd: directory.path }).catch(
      ({ stdout }: { stdout: string }) => ({ stdout }),
    )
    expect(compiled.stdout).toBe('')

    const made = await rolldown({ input: path('use.ts'), platform: 'node', tsconfig: false })
    await made.write({ file: path('use.mjs'), codeSplitting: false })
    await made.close()
    const used = await import(/* @vite-ignore */ pathToFileURL(path('use.mjs')).href)
    const names = ['two.txt', 'one.txt'].filter((one) => code.includes(one))
    expect(await used.run(server.url, server.token)).toEqual({
      total: names.length,
      names,
      pages: names.length,
      problem: 'media-unknown',
    })
  },
)
