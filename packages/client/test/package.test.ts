import { execFile } from 'node:child_process'
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, test } from 'vitest'
import * as sources from '../src/index.ts'
import * as rules from '../src/rules.ts'

const root = resolve(import.meta.dirname, '..')
let built: string
beforeAll(async () => {
  built = await mkdtemp(join(tmpdir(), 'mediabucket-client-'))
  // This also checks that the sources use only the types of browsers and of ES2022.
  await promisify(execFile)(join(root, '../../node_modules/.bin/tsc'), [
    '-p',
    join(root, 'tsconfig.build.json'),
    '--outDir',
    built,
  ])
})
afterAll(() => rm(built, { recursive: true }))

const names = Object.keys(sources).sort()

const manifest = async () => JSON.parse(await readFile(join(root, 'package.json'), 'utf8'))

test('the repository exports the sources, the published package exports the build', async () => {
  const { exports, scripts } = await manifest()
  const entries = { '.': 'index', './rules': 'rules', './dom': 'dom' }
  expect(Object.keys(exports)).toEqual(Object.keys(entries))
  for (const [entry, name] of Object.entries(entries)) {
    expect(exports[entry]).toEqual({ types: `./src/${name}.ts`, default: `./src/${name}.ts` })
    const set = (types: string, code: string) =>
      `exports[${entry}].types=./${types} exports[${entry}].default=./${code}`
    expect(scripts.prepack).toContain(set(`dist/${name}.d.ts`, `dist/${name}.js`))
    expect(scripts.postpack).toContain(set(`src/${name}.ts`, `src/${name}.ts`))
  }
})

test('the package has no dependencies', async () => {
  expect(Object.keys(await manifest())).not.toContain('dependencies')
  const imports = await Promise.all(
    (await readdir(built, { recursive: true }))
      .filter((name) => name.endsWith('.js'))
      .map(
        async (name) => (await readFile(join(built, name), 'utf8')).match(/(?<=\bfrom ')[^.'][^']*/g) ?? [],
      ),
  )
  expect(imports.length).toBeGreaterThan(10)
  expect(imports.flat()).toEqual([])
})

test('the build exports the same names and types as the sources', async () => {
  const moduleOf = (name: string) => import(pathToFileURL(join(built, name)).href)
  expect(Object.keys(await moduleOf('index.js')).sort()).toEqual(names)
  expect(Object.keys(await moduleOf('rules.js'))).toEqual(Object.keys(rules))
  expect(await readFile(join(built, 'client.d.ts'), 'utf8')).toContain('listPage(number: number')
})

test('the package resolves by its name', async () => {
  const code = "console.log(JSON.stringify(Object.keys(await import('@mediabucket/client')).sort()))"
  const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '-e', code], {
    cwd: root,
  })
  expect(JSON.parse(stdout)).toEqual(names)
})
