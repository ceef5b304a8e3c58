import { existsSync, globSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { expect, test } from 'vitest'
import { filesBelow, read, root } from './sources.ts'

const documents = globSync(['*.md', '{docs,bench,examples,packages,test}/**/*.md'], {
  cwd: root,
  exclude: ['**/node_modules'],
}).sort()

/** The text without fenced blocks, whose content is code. */
const proseOf = (path: string) => read(path).replace(/^```.*?^```$/gms, '')

const matches = (text: string, pattern: RegExp) => [...text.matchAll(pattern)].map(([, match = '']) => match)

test('every relative link and image of the documents refers to an existing file', () => {
  const broken = documents.flatMap((path) =>
    matches(proseOf(path), /(?:\]\(|src="|srcset=")([^)"#\s]+)/g)
      .filter((target) => !/^https?:/.test(target) && !existsSync(join(root, dirname(path), target)))
      .map((target) => `${path} → ${target}`),
  )
  expect(documents).toContain('docs/operations/systemd.md')
  expect(broken).toEqual([])
})

test('README.md refers to every page of docs', () => {
  const targets = matches(proseOf('README.md'), /\]\(([^)#\s]+)/g)
  const pages = documents.filter((path) => /^docs\/[\w-]+\.md$/.test(path))
  expect(pages.filter((path) => !targets.includes(path))).toEqual([])
})

test('README.md names the features that have a section of their own', () => {
  const features =
    read('README.md')
      .split(/^## /m)
      .find((section) => section.startsWith('Features')) ?? ''
  for (const page of [
    'docs/changes.md',
    'docs/webhooks.md',
    'docs/gallery.md#asking-for-files',
    '#sharex',
    '#labels',
  ])
    expect(features).toContain(page)
})

const isSource = (name: string) =>
  ['', 'packages/server/src'].some((base) => existsSync(join(root, base, name)))

/** The app that a page of docs/start describes, whose files the page names. */
const exampleOf = (path: string) => `examples/${basename(path, '.md')}`

test('every source file that the documents name exists', () => {
  const missing = documents.flatMap((path) =>
    matches(proseOf(path), /`((?:[\w.-]+\/)+[\w.-]+\.tsx?)`/g)
      .filter((name) => !isSource(name) && !existsSync(join(root, exampleOf(path), name)))
      .map((name) => `${path} names ${name}`),
  )
  expect(missing).toEqual([])
})

test('every folder of sources that the pages about the architecture name exists', () => {
  const missing = documents
    .filter((path) => path.startsWith('docs/architecture'))
    .flatMap((path) =>
      matches(proseOf(path), /`((?:[\w.-]+\/){2,})`/g)
        .filter((name) => !isSource(name))
        .map((name) => `${path} names ${name}`),
    )
  expect(missing).toEqual([])
})

test('every source file that a comment of the sources names exists', () => {
  const sources = ['packages', 'test', 'bench'].flatMap(filesBelow)
  const missing = sources
    .filter((path) => /^packages\/[\w-]+\/src\//.test(path) && !path.endsWith('.test.ts'))
    .flatMap((path) =>
      matches(read(path), /^\s*((?:\/\/|\/?\*|--) .*)$/gm)
        .flatMap((comment) => matches(comment, /(?<![\w./-])((?:[\w-]+\/)*[\w-]+\.tsx?)\b/g))
        .filter((name) => !sources.some((source) => `/${source}`.endsWith(`/${name}`)))
        .map((name) => `${path} names ${name}`),
    )
  expect(missing).toEqual([])
})
