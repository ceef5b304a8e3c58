import { globSync, readFileSync } from 'node:fs'
import { expect, test } from 'vitest'

test('no source file has more than 500 lines', () => {
  const long = globSync('packages/*/src/**/*.{ts,tsx}')
    .map((file) => [file, readFileSync(file, 'utf8').split('\n').length - 1] as const)
    .filter(([, lines]) => lines > 500)
  expect(long).toEqual([])
})
