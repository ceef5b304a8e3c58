import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { read, root } from './sources.ts'

/** The rows of the table of attacks. */
const rows = [...read('docs/security.md').matchAll(/^\| (\d+) \| (.+?) \| (.+?) \| (.+) \|$/gm)].map(
  ([, number, attack = '', , tests = '']) => ({
    number: Number(number),
    attack,
    tests: [...tests.matchAll(/\[([^\]]+)\]\(\.\.\/([^)]+)\)/g)].map(([, title = '', file = '']) => ({
      title,
      file,
    })),
  }),
)

test('docs/security.md numbers its attacks without gap, and names a test for each', () => {
  expect(rows.length).toBeGreaterThan(40)
  expect(rows.map(({ number }) => number)).toEqual(rows.map((_, index) => index + 1))
  expect(rows.filter(({ tests }) => tests.length === 0).map(({ attack }) => attack)).toEqual([])
})

test('every test that docs/security.md names exists, and is not skipped', () => {
  const missing = rows.flatMap(({ number, tests }) =>
    tests
      .filter(({ file, title }) => !existsSync(join(root, file)) || !hasTest(read(file), title))
      .map(({ file, title }) => `${number}: ${file} “${title}”`),
  )
  expect(missing).toEqual([])
})

/** Whether a title begins with this text. */
const hasTest = (source: string, title: string): boolean =>
  ["'", '`', '"'].some((quote) => source.includes(`${quote}${title}`)) &&
  !/\.(?:skip|todo|only)\(/.test(source)
