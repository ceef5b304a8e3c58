import { expect, test } from 'vitest'
import { sqliteText } from './statements.ts'

test.each([
  ['parameters are numbered in another way', 'WHERE a = $1 AND b = $12', 'WHERE a = ?1 AND b = ?12'],
  [
    'a list is JSON',
    'WHERE id = ANY ($2::text[]) OR n = ANY ($1)',
    'WHERE id IN (SELECT value FROM json_each(?2)) OR n IN (SELECT value FROM json_each(?1))',
  ],
  ['types are left out', 'SELECT sum(size)::int8, -$1::int8', 'SELECT sum(size), -?1'],
  [
    'a limit is not a parameter alone',
    'ORDER BY seq LIMIT $13 OFFSET $2',
    'ORDER BY seq LIMIT ?13 + 0 OFFSET ?2',
  ],
  [
    'rows are not locked',
    'WITH a AS (SELECT 1 FROM b FOR UPDATE) SELECT 1 FROM a FOR NO KEY UPDATE',
    'WITH a AS (SELECT 1 FROM b) SELECT 1 FROM a',
  ],
])('statements for SQLite: %s', (_, text, expected) => {
  expect(sqliteText(text)).toBe(expected)
})
