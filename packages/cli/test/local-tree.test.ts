import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join, relative } from 'node:path'
import { cleanPath } from '@mediabucket/client/rules'
import fc from 'fast-check'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { comparePaths, isWithin, walkTree } from '../src/local-tree.ts'

let directory = ''
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'mediabucket-'))
})
afterAll(() => rm(directory, { recursive: true, force: true }))

const inBytes = (one: string, other: string) => Buffer.compare(Buffer.from(one), Buffer.from(other))

test('paths are compared by the bytes of UTF-8', () => {
  const text = fc.string({ unit: fc.constantFrom('a', '/', '.', 'é', '\ud7ff', '\ue000', '\uffee', '😀') })
  fc.assert(
    fc.property(text, text, (one, other) => {
      expect(Math.sign(comparePaths(one, other))).toBe(inBytes(one, other))
    }),
  )
})

test('a path is within a place that it has or is below, also of very many paths and places', () => {
  const places = new Set(['a/', 'b/c/', '.DS_Store/'])
  expect(['a', 'a/b', 'b/c', 'b/c/d/e', '.DS_Store'].map((path) => isWithin(path, places))).not.toContain(
    false,
  )
  expect(['ab', 'b', 'b/cd', 'c/a', 'b/c.txt'].map((path) => isWithin(path, places))).not.toContain(true)
  const folders = Array.from({ length: 20_000 }, (_, index) => `folder ${index}/`)
  const systemFiles = new Set(folders.map((folder) => `${folder}.DS_Store/`))
  expect(folders.filter((folder) => isWithin(`${folder}picture.jpg`, systemFiles))).toEqual([])
})

/** The paths that a walk finds, and what it reports. */
async function walk(...paths: string[]) {
  const root = await mkdtemp(join(directory, 'tree-'))
  for (const path of paths) {
    await mkdir(dirname(join(root, path)), { recursive: true })
    await writeFile(join(root, path), path)
  }
  const reasons: string[] = []
  const found: string[] = []
  const names: string[] = []
  const files = walkTree({
    ...{ directory: root, folder: 'in/' },
    nameOf: (name) => cleanPath(`./${name}`),
    isExcluded: (path) => path === 'left/out',
    onFault: ({ reason }) => void reasons.push(reason),
  })
  for await (const { path, file } of files) {
    found.push(path)
    names.push(relative(root, file.path))
  }
  return { found, names, reasons }
}

test('files are found in the order of the bytes of whole paths', async () => {
  const paths = ['a/b', 'a.txt', 'a', 'a b/c/d', 'a-/x', 'é', 'z', '\uffee/1', '😀/1', '10', '2']
  const files = paths.filter((path) => path !== 'a')
  const many = Array.from({ length: 100 }, (_, index) => `many/${index}`)
  const { found, reasons } = await walk(...files, ...many, 'left/out/x', 'left/in')
  const all = [...files, ...many, 'left/in'].map((path) => `in/${path}`)
  expect([found, reasons]).toEqual([all.sort(inBytes), []])
})

test('directories with the same name in the bucket are one; of files with the same path, the second is reported', async () => {
  const { found, reasons } = await walk(
    ...['e\u0301/2', 'é/1', 'é/3', 'e\u0301/4', 'é/same', 'e\u0301/same', '\u200b/top', 'u\u200b'],
    ...['u', '\u200b/\u200b', `${'long/'.repeat(250)}x`],
  )
  expect(found).toEqual(['in/top', 'in/u', 'in/é/1', 'in/é/2', 'in/é/3', 'in/é/4', 'in/é/same'])
  expect(reasons.toSorted()).toEqual([
    'has the same path in the bucket as another file',
    'has the same path in the bucket as another file',
    'its path in the bucket would have more than 1024 bytes',
    'nothing of its name would remain in the bucket',
  ])
})

test('of files with the same path, the one with this name is found, so that another one does not replace its item', async () => {
  const { found, names, reasons } = await walk('a\\b', 'b', 'e\u0301/same', 'é/same')
  expect(found).toEqual(['in/b', 'in/é/same'])
  expect(names).toEqual(['b', 'é/same'])
  expect(reasons).toHaveLength(2)
})
