import { execFile } from 'node:child_process'
import { mkdtempDisposable, readFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import * as sources from '../src/index.ts'

const root = resolve(import.meta.dirname, '..')
const names = Object.keys(sources).sort()

test('the repository exports the sources, the published package exports the build, and nothing else is needed', async () => {
  const manifest = JSON.parse(await readFile(join(root, 'package.json'), 'utf8'))
  expect(manifest.exports).toEqual({ types: './src/index.ts', default: './src/index.ts' })
  expect(manifest.scripts.prepack).toContain(
    'exports.types=./dist/index.d.ts exports.default=./dist/index.js',
  )
  expect(manifest.scripts.postpack).toContain('exports.types=./src/index.ts exports.default=./src/index.ts')
  expect(Object.keys(manifest)).not.toContain('dependencies')
})

test('the build exports the same names as the sources, and so does the package by its name', async () => {
  await using built = await mkdtempDisposable(join(tmpdir(), 'mediabucket-strip-metadata-'))
  const run = promisify(execFile)
  const project = join(root, 'tsconfig.build.json')
  await run(join(root, '../../node_modules/.bin/tsc'), ['-p', project, '--outDir', built.path])
  const module = await import(pathToFileURL(join(built.path, 'index.js')).href)
  expect(Object.keys(module).sort()).toEqual(names)
  const code = "console.log(JSON.stringify(Object.keys(await import('@mediabucket/strip-metadata')).sort()))"
  const { stdout } = await run(process.execPath, ['--input-type=module', '-e', code], { cwd: root })
  expect(JSON.parse(stdout)).toEqual(names)
})
