import { expect, test } from 'vitest'
import { itemKinds, itemOrders } from '../../../src/core/queries.ts'
import { searchFiles } from '../../../src/storage/catalog/file-search.ts'
import { createItemStatements } from '../../../src/storage/catalog/item-lists.ts'
import type { BucketId } from '../../../src/storage/catalog/records.ts'
import { openDataDirectory } from '../../../src/storage/catalog/sqlite/data-directory.ts'
import { all } from '../../../src/storage/catalog/sqlite/database.ts'
import { sqliteText, text } from '../../../src/storage/catalog/statements.ts'
import { tempDirectory } from './temp-directory.ts'

test('K9 SQLite reads every list from an index in the order of the list, and sorts nothing', () => {
  using db = openDataDirectory(tempDirectory())
  const statementOf = createItemStatements('?')
  for (const order of itemOrders)
    for (const kind of [null, ...itemKinds])
      for (const from of [null, 5])
        for (const to of [null, 7])
          for (const after of [null, { seq: 3, createdAt: 6 }]) {
            const selection = { bucketId: 1 as BucketId, order, kind, from, to, name: null }
            const { sql, values } = statementOf(selection, after, 10, 8)
            const plan = all(db.prepare(`EXPLAIN QUERY PLAN ${sql}`), ...values).map((row) => text(row, 3))
            const isFiltered = kind !== null || from !== null || to !== null
            const searches = plan.filter((step) => /^(SEARCH|SCAN)/.test(step))
            for (const step of searches)
              expect({ selection, step }).toEqual({
                selection,
                step: expect.stringMatching(
                  isFiltered
                    ? /USING INDEX items_by_kind \(bucket_id=\? AND <expr>=\? AND .*created_at[<>]\?/
                    : /USING PRIMARY KEY \(bucket_id=\? AND seq[<>]\?\)/,
                ),
              })
            expect(searches).toHaveLength(isFiltered && kind === null ? itemKinds.length : 1)
            expect(plan.join()).not.toContain('TEMP B-TREE')
          }
})

test.each([
  ['sha256', '00'.repeat(32), /USING INDEX items_by_hash \(bucket_id=\? AND <expr>=\? AND seq[<>]\?\)/],
  ['path', 'a/', /USING INDEX items_by_path \(bucket_id=\? AND .*path[<>]\?/],
])('K16, K17 SQLite reads items by %s from an index, and sorts nothing', (filter, wanted, index) => {
  using db = openDataDirectory(tempDirectory())
  for (const order of itemOrders)
    for (const after of [null, { seq: 3, createdAt: 6, path: 'a/b' }]) {
      const selection = { bucketId: 1 as BucketId, order, kind: null, from: null, to: null, name: null }
      const search = searchFiles({ ...selection, [filter]: wanted }, after, 10)
      search.next()
      const { value } = search.next({ rows: [[0, 0]], changes: 0 })
      const sql = 'sql' in value && typeof value.sql === 'object' ? value.sql.sqlite : null
      if (!('sql' in value) || sql === null) throw new Error('no statement follows')
      const inputs = value.values.map((input) => (typeof input === 'object' ? Buffer.alloc(8) : input))
      const plan = all(db.prepare(`EXPLAIN QUERY PLAN ${sqliteText(sql)}`), ...inputs)
      expect(plan.map((row) => text(row, 3))).toEqual([expect.stringMatching(index)])
    }
})
