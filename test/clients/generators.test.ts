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

/** A generator of clients as docs/generated-clients.md describes it: the command, the files of its settings, and a module that uses the client. */
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
  async ({ settings, command, code }) => {
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

    await writeFile(path('use.ts'), code)
    await writeFile(path('tsconfig.json'), JSON.stringify({ compilerOptions, files: ['use.ts'] }))
    const compiled = await run(join(root, 'node_modules/.bin/tsc'), [], { cwd: directory.path }).catch(
      ({ stdout }: { stdout: string }) => ({ stdout }),
    )
    expect(compiled.stdout).toBe('')

    const made = await rolldown({ input: path('use.ts'), platform: 'node', tsconfig: false })
    await made.write({ file: path('use.mjs'), codeSplitting: false })
    await made.close()
    const used = await import(/* @vite-ignore */ pathToFileURL(path('use.mjs')).href)
    expect(await used.run(server.url, server.token)).toEqual({
      total: 2,
      names: ['two.txt', 'one.txt'],
      pages: 2,
      problem: 'media-unknown',
    })
  },
)
