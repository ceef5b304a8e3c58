import { existsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { beginRestore } from '../../src/upkeep/restore-stage.ts'
import { tempDirectory } from '../catalog/temp-directory.ts'

test('F8 a restore that an earlier version interrupted after its last step is complete', async () => {
  const data = tempDirectory()
  const record = join(data, 'restoring.json')
  // Earlier versions stored no bytes in the catalog, and did not count them.
  const result = { items: 9, copied: 8, bytes: 70, present: 1, faulty: [] }
  writeFileSync(join(data, 'catalog.db'), '')
  writeFileSync(record, JSON.stringify({ backup: 'hash', result }))
  expect(await beginRestore(data, 'hash')).toEqual({ ...result, inCatalog: 0 })
  expect(existsSync(record)).toBe(false)
})
