import { execFile } from 'node:child_process'
import { chmod, chown, mkdir, readdir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import { temporaryDirectory } from '../harness/directory.ts'
import { basics, bin, startServer } from '../harness/server.ts'
import { until } from '../harness/until.ts'

const { NODE_COMPILE_CACHE: _, ...without } = basics

/** Runs the program with a home directory, and returns what it prints. */
const printVersion = (variables: Readonly<Record<string, string>>) =>
  promisify(execFile)(process.execPath, [bin, '--version'], { env: { ...without, ...variables } })

const filesBelow = async (directory: string) => {
  const entries = await readdir(directory, { recursive: true, withFileTypes: true }).catch(() => [])
  return entries.filter((entry) => entry.isFile()).length
}

test('O12 commands keep compiled modules in ~/.cache/mediabucket, which only their user can access', async () => {
  await using home = await temporaryDirectory()
  await printVersion({ HOME: home.path })
  const cache = join(home.path, '.cache/mediabucket')
  expect((await stat(cache)).mode & 0o777).toBe(0o700)
  expect(await filesBelow(cache)).toBeGreaterThan(0)
})

test.each(['CACHE_DIRECTORY', 'XDG_CACHE_HOME'])('O12 %s names the directory', async (name) => {
  await using home = await temporaryDirectory()
  await using other = await temporaryDirectory()
  await printVersion({ HOME: home.path, [name]: other.path })
  expect([await filesBelow(home.path), (await filesBelow(other.path)) > 0]).toEqual([0, true])
})

test('O12 the service keeps compiled modules of its threads too, and also if it is killed', async () => {
  await using home = await temporaryDirectory()
  const settings = { HOME: home.path, NODE_COMPILE_CACHE: '' }
  await using server = await startServer(settings, undefined, bin, [])
  await until('compiled modules', async () => (await filesBelow(home.path)) > 10)
  await server.kill()
  expect(await filesBelow(home.path)).toBeGreaterThan(10)
})

test('O12 a directory that others can write to, that belongs to others, or that cannot be created is not used', async () => {
  await using home = await temporaryDirectory()
  const cache = join(home.path, '.cache/mediabucket')
  await mkdir(cache, { recursive: true })
  const refused = async (HOME: string) => {
    const { stdout, stderr } = await printVersion({ HOME })
    expect([/^\d+\.\d+\.\d+\n$/.test(stdout), stderr]).toEqual([true, ''])
    expect(await filesBelow(home.path)).toBe(0)
  }
  await chmod(cache, 0o777)
  await refused(home.path)
  await chmod(cache, 0o700)
  if (process.getuid?.() === 0) {
    await chown(cache, 12_345, 12_345)
    await refused(home.path)
  }
  await refused('/dev/null')
})

test('O12 without an absolute home directory, nothing is kept, also not below the current directory', async () => {
  await using current = await temporaryDirectory()
  for (const HOME of ['', '.'])
    await promisify(execFile)(process.execPath, [bin, '--version'], {
      cwd: current.path,
      env: { ...without, HOME },
    })
  expect(await current.names()).toEqual([])
})
