import { globSync, readFileSync } from 'node:fs'
import { basename } from 'node:path'
import { expect, test } from 'vitest'
import { sourcesBelow } from './sources.ts'

test('no source file has more than 500 lines', () => {
  const long = globSync('packages/*/src/**/*.{ts,tsx}')
    .map((file) => [file, readFileSync(file, 'utf8').split('\n').length - 1] as const)
    .filter(([, lines]) => lines > 500)
  expect(long).toEqual([])
})

test('no two source files of the server share a name', () => {
  const named = Map.groupBy(sourcesBelow('packages/server/src'), (file) => basename(file))
  expect([...named.values()].filter((files) => files.length > 1)).toEqual([])
})
