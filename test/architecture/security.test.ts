import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { read, root } from './sources.ts'

const [, table = ''] = read('docs/security.md').split('\n| Attack | Tests |\n| --- | --- |\n')
/** The rows of the table of attacks. */
const rows = table
  .split('\n')
  .filter((line) => line.startsWith('|'))
  .map((line) => ({
    attack: line.split(' | ')[0] ?? '',
    tests: [...line.matchAll(/\[([^\]]+)\]\(\.\.\/([^)]+)\)/g)].map(([, title = '', file = '']) => ({
      title,
      file,
    })),
  }))

test('docs/security.md names a test for each attack', () => {
  expect(rows.length).toBeGreaterThan(40)
  expect(rows.filter(({ tests }) => tests.length === 0).map(({ attack }) => attack)).toEqual([])
})

test('every test that docs/security.md names exists, and is not skipped', () => {
  const missing = rows.flatMap(({ attack, tests }) =>
    tests
      .filter(({ file, title }) => !existsSync(join(root, file)) || !hasTest(read(file), title))
      .map(({ file, title }) => `${attack}: ${file} “${title}”`),
  )
  expect(missing).toEqual([])
})

/** Whether a title begins with this text. */
const hasTest = (source: string, title: string): boolean =>
  ["'", '`', '"'].some((quote) => source.includes(`${quote}${title}`)) &&
  !/\.(?:skip|todo|only)\(/.test(source)
