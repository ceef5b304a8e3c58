import { execFile } from 'node:child_process'
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, test } from 'vitest'
import * as sources from '../src/index.ts'

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
  expect(exports).toEqual({ types: './src/index.ts', default: './src/index.ts' })
  expect(scripts.prepack).toContain('exports.types=./dist/index.d.ts exports.default=./dist/index.js')
  expect(scripts.postpack).toContain('exports.types=./src/index.ts exports.default=./src/index.ts')
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
  const module = await import(pathToFileURL(join(built, 'index.js')).href)
  expect(Object.keys(module).sort()).toEqual(names)
  expect(await readFile(join(built, 'client.d.ts'), 'utf8')).toContain('listPage(number: number')
})

test('the package resolves by its name', async () => {
  const code = "console.log(JSON.stringify(Object.keys(await import('@mediabucket/client')).sort()))"
  const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '-e', code], {
    cwd: root,
  })
  expect(JSON.parse(stdout)).toEqual(names)
})
