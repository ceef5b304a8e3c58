import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, mkdtempDisposable, readdir, rename, rm, utimes, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import {
  createTemporaryDirectory,
  removeLeftDirectories,
} from '../../../src/storage/temporary-directories.ts'

let directory: Awaited<ReturnType<typeof mkdtempDisposable>>
beforeAll(async () => {
  directory = await mkdtempDisposable(join(tmpdir(), 'mediabucket-sweep-'))
  vi.stubEnv('TMPDIR', directory.path)
})
afterAll(async () => {
  vi.unstubAllEnvs()
  await directory[Symbol.asyncDispose]()
})

const day = 24 * 3600 * 1000
const left = () => readdir(directory.path)

/** Another process with a temporary directory with a file, and its name. */
async function startOther() {
  const module = new URL('../../../src/storage/temporary-directories.ts', import.meta.url)
  const code = `const { createTemporaryDirectory } = await import(${JSON.stringify(module.href)})
    console.log(await createTemporaryDirectory())
    setInterval(() => undefined, 1e6)`
  const child = spawn(process.execPath, ['--input-type=module', '-e', code], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const [line] = await once(child.stdout, 'data')
  const path = `${line}`.trim()
  await writeFile(join(path, 'source'), 'bytes of a user')
  return {
    name: basename(path),
    async kill() {
      const exited = once(child, 'exit')
      child.kill('SIGKILL')
      await exited
    },
  }
}

test('directories of killed processes are removed with their files; those of running processes are not', async () => {
  const mine = basename(await createTemporaryDirectory())
  const [first, second] = [await startOther(), await startOther()]
  try {
    await first.kill()
    expect(await removeLeftDirectories(Date.now() + 2 * day)).toBe(1)
    expect(new Set(await left())).toEqual(new Set([mine, second.name]))
  } finally {
    await second.kill()
  }
  expect(await removeLeftDirectories(Date.now())).toBe(1)
  expect(await left()).toEqual([mine])
  await rm(join(directory.path, mine), { recursive: true })
})

test('the directory of an ended process is removed although another process has its id now', async () => {
  const path = await createTemporaryDirectory()
  await rename(path, path.replace(/-\d+-(\w{6})$/, '-1-$1'))
  expect(await removeLeftDirectories(Date.now())).toBe(process.platform === 'linux' ? 1 : 0)
  expect(await left()).toEqual([])
})

test('directories of other containers and of earlier versions are removed after a day; others are not', async () => {
  const foreign = [`mediabucket-picture-000000000000-${process.pid}-1-abcdef`, 'mediabucket-picture-abcdef']
  const others = ['mediabucket-picture-kept-by-someone', 'other']
  for (const name of [...foreign, ...others]) await mkdir(join(directory.path, name))
  await writeFile(join(directory.path, 'mediabucket-picture-ghijkl'), 'a file')
  expect(await removeLeftDirectories(Date.now() + day / 2)).toBe(0)
  await utimes(join(directory.path, 'other'), 1, 1)
  expect(await removeLeftDirectories(Date.now() + 2 * day)).toBe(2)
  expect(new Set(await left())).toEqual(new Set([...others, 'mediabucket-picture-ghijkl']))
})
