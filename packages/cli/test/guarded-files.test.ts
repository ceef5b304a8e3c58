import { execFile } from 'node:child_process'
import { link, lstat, mkdir, readdir, readFile, rename, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import { temporaryDirectory } from '../../../test/harness/directory.ts'
import {
  appendRegular,
  createRegular,
  openRegular,
  openTree,
  readRegular,
  removeIrregular,
  replaceRegular,
} from '../src/guarded-files.ts'

async function scene() {
  const directory = await temporaryDirectory()
  const at = (...names: string[]) => join(directory.path, ...names)
  for (const name of ['root', 'outside']) await mkdir(at(name))
  await writeFile(at('outside/precious'), 'precious')
  return { at, [Symbol.asyncDispose]: () => directory[Symbol.asyncDispose]() }
}

type Scene = Awaited<ReturnType<typeof scene>>

const plants: readonly (readonly [string, (path: string, at: Scene['at']) => Promise<unknown>])[] = [
  ['a link', (path, at) => symlink(at('outside/precious'), path)],
  ['a link to nothing', (path, at) => symlink(at('outside/new'), path)],
  ['a link to a directory', (path, at) => symlink(at('outside'), path)],
  ['a hard link', (path, at) => link(at('outside/precious'), path)],
  ['a FIFO', (path) => promisify(execFile)('mkfifo', [path])],
]

test.each(plants)('%s is neither read, appended to, nor created, and can be replaced', async (_, plant) => {
  await using at = await scene()
  const path = at.at('root/file')
  await plant(path, at.at)
  await expect(openRegular(path, 'read')).rejects.toThrow('is a link or no regular file')
  await expect(openRegular(path, 'append')).rejects.toThrow('is a link or no regular file')
  await expect(readRegular(path)).rejects.toThrow('is a link or no regular file')
  await expect(appendRegular(path, 'x')).rejects.toThrow('is a link or no regular file')
  await expect(createRegular(path)).rejects.toThrow('EEXIST')
  await replaceRegular(path, ['mine'])
  expect((await lstat(path)).isFile()).toBe(true)
  await appendRegular(path, ' too')
  expect(await readRegular(path)).toBe('mine too')
  expect(await readdir(at.at('root'))).toEqual(['file'])
  expect(await readdir(at.at('outside'))).toEqual(['precious'])
  expect(await readFile(at.at('outside/precious'), 'utf8')).toBe('precious')
})

test('removeIrregular removes everything but files with one name and directories', async () => {
  await using at = await scene()
  for (const [index, [, plant]] of plants.entries()) {
    await plant(at.at('root', `${index}`), at.at)
    await removeIrregular(at.at('root', `${index}`))
  }
  expect(await readdir(at.at('root'))).toEqual([])
  await removeIrregular(at.at('root/missing'))
  await removeIrregular(at.at('outside/precious'))
  await mkdir(at.at('root/directory'))
  await expect(removeIrregular(at.at('root/directory'))).rejects.toThrow()
  expect(await readdir(at.at('outside'))).toEqual(['precious'])
})

test('several calls at a time append to a new file', async () => {
  await using at = await scene()
  const path = at.at('root/file')
  await Promise.all(Array.from({ length: 50 }, () => appendRegular(path, 'x', { flush: true })))
  expect((await readRegular(path))?.length).toBe(50)
})

test.each(['../outside/new', 'a/../../outside/new', 'a//b', './b', '', '..', '/etc/b'])(
  'the path %j is not below a directory',
  async (name) => {
    await using at = await scene()
    await using tree = await openTree(at.at('root'))
    await expect(tree.at(name, (path) => writeFile(path, 'x'), { creates: true })).rejects.toThrow(
      'is no path below',
    )
    expect(await readdir(at.at('root'))).toEqual([])
  },
)

test('a link in place of a directory is not followed, also if it takes its place while a file is written', async () => {
  await using at = await scene()
  await using tree = await openTree(at.at('root'))
  const write = async (name: string, before: () => Promise<void>) =>
    await tree.at(
      name,
      async (path) => {
        await before()
        await using file = await createRegular(path)
        await file.writeFile('x')
      },
      { creates: true },
    )
  await write('a/b/1', async () => {})
  await write('a/b/2', async () => {
    await rename(at.at('root/a'), at.at('root/moved'))
    await mkdir(at.at('root/a'))
    await symlink(at.at('outside'), at.at('root/a/b'))
  })
  await expect(write('a/b/3', async () => {})).rejects.toThrow(`${at.at('root/a/b')} is no directory`)
  expect(await readdir(at.at('root/moved/b'))).toEqual(['1', '2'])
  await write('a/4', async () => {
    await rename(at.at('root'), at.at('gone'))
    await symlink(at.at('outside'), at.at('root'))
  })
  expect((await readdir(at.at('gone/a'))).sort()).toEqual(['4', 'b'])
  expect(await readdir(at.at('outside'))).toEqual(['precious'])
})
