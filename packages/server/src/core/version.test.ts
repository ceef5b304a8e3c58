import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { version } from './version.ts'

test('the version equals that of package.json', () => {
  const manifest = new URL('../../package.json', import.meta.url)
  expect(version).toBe(JSON.parse(readFileSync(manifest, 'utf8')).version)
})
