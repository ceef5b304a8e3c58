import fs, { existsSync, mkdirSync, mkdtempSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import { tmpdir } from 'node:os'
import { join, relative } from 'node:path'
import { expect, onTestFinished, test, vi } from 'vitest'
import { CreateDirectoryError, createDirectories } from '../../src/storage/durable-files.ts'

/** A new directory, and spies on the calls that createDirectories makes. The spies call the real functions. */
function watchDisk() {
  const root = mkdtempSync(join(tmpdir(), 'mediabucket-files-'))
  const spies = {
    mkdir: vi.spyOn(fs, 'mkdirSync'),
    open: vi.spyOn(fs, 'openSync'),
    fsync: vi.spyOn(fs, 'fsyncSync'),
    close: vi.spyOn(fs, 'closeSync'),
  }
  // Named imports of node:fs see the spies only after this call.
  syncBuiltinESMExports()
  onTestFinished(() => {
    vi.restoreAllMocks()
    syncBuiltinESMExports()
    rmSync(root, { recursive: true, force: true })
  })

  /** The calls in their order, such as `mkdir a/b` and `fsync`. */
  const calls = (): string[] =>
    Object.entries(spies)
      .flatMap(([name, { mock }]) =>
        mock.calls.map(([target], index) => ({
          order: mock.invocationCallOrder[index] ?? 0,
          call: typeof target === 'string' ? `${name} ${relative(root, target) || '.'}` : name,
        })),
      )
      .sort((a, b) => a.order - b.order)
      .map(({ call }) => call)
  return { root, ...spies, calls }
}

const systemError = (code: string): Error => Object.assign(new Error(`${code}: from a test`), { code })

/** The error of a path that cannot be created. */
function failureOf(path: string): unknown {
  try {
    createDirectories(path)
  } catch (error) {
    return error
  }
  return null
}

test('missing parents are created for their owner only, and each changed directory is synced at once', () => {
  const { root, calls } = watchDisk()
  createDirectories(join(root, 'a', 'b'))
  expect(calls()).toEqual(['mkdir a', 'open .', 'fsync', 'close', 'mkdir a/b', 'open a', 'fsync', 'close'])
  for (const path of ['a', 'a/b']) expect(statSync(join(root, path)).mode & 0o777).toBe(0o700)
})

test('an existing directory is not changed', () => {
  const { root, calls } = watchDisk()
  createDirectories(root)
  expect(calls()).toEqual([])
})

test('a directory that another process creates at the same time is used, and its parent is synced', () => {
  const { root, mkdir, fsync } = watchDisk()
  mkdir.mockImplementationOnce((path) => {
    mkdirSync(path)
    throw systemError('EEXIST')
  })
  createDirectories(join(root, 'a'))
  expect(existsSync(join(root, 'a'))).toBe(true)
  expect(fsync).toHaveBeenCalledOnce()
})

test('a parent that this user may write to and not read is not synced', () => {
  const { root, open, fsync } = watchDisk()
  open.mockImplementationOnce(() => {
    throw systemError('EACCES')
  })
  createDirectories(join(root, 'a', 'b'))
  expect(existsSync(join(root, 'a', 'b'))).toBe(true)
  expect(fsync).toHaveBeenCalledOnce()
})

test('a failed sync is reported, and its descriptor is closed', () => {
  const { root, fsync, calls } = watchDisk()
  fsync.mockImplementationOnce(() => {
    throw systemError('EIO')
  })
  expect(failureOf(join(root, 'a', 'b'))).toMatchObject({ code: 'EIO' })
  expect(calls()).toEqual(['mkdir a', 'open .', 'fsync', 'close'])
})

test.each([
  ['below a file', 'file/a/b', 'file/a', 'ENOTDIR'],
  ['where a link has no target', 'link', 'link', 'EEXIST'],
])('a directory %s is an error with the first path that failed', (_, wanted, failed, code) => {
  const { root } = watchDisk()
  writeFileSync(join(root, 'file'), '')
  symlinkSync('nowhere', join(root, 'link'))
  const error = failureOf(join(root, wanted))
  expect(error).toBeInstanceOf(CreateDirectoryError)
  expect(error).toMatchObject({ path: join(root, failed), code, syscall: 'mkdir' })
})

test.runIf(process.platform === 'linux')('a path below /proc fails and does not hang', () => {
  expect(failureOf('/proc/mediabucket/data')).toMatchObject({ path: '/proc/mediabucket', code: 'ENOENT' })
})
