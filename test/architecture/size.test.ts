import { globSync, readFileSync } from 'node:fs'
import { basename } from 'node:path'
import { expect, test } from 'vitest'
import { sourcesBelow } from './sources.ts'

const catalog = 'packages/server/src/storage/catalog'
const isOfCatalog = (file: string): boolean => file.startsWith(`${catalog}/`)

test('no source file has more than 500 lines', () => {
  const long = globSync('packages/*/src/**/*.{ts,tsx}')
    .map((file) => [file, readFileSync(file, 'utf8').split('\n').length - 1] as const)
    .filter(([, lines]) => lines > 500)
  expect(long).toEqual([])
})

test('no two source files of the server share a name, except those of the engines of the catalog', () => {
  const named = Map.groupBy(
    sourcesBelow('packages/server/src').filter((file) => !isOfCatalog(file)),
    (file) => basename(file),
  )
  const catalogs = new Set(sourcesBelow(catalog).map((file) => basename(file)))
  const shared = [...named].filter(([name, files]) => files.length > 1 || catalogs.has(name))
  expect(shared).toEqual([])
})
