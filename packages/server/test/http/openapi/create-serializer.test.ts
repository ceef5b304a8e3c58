import { Type } from 'typebox'
import { expect, test } from 'vitest'
import { createSerializer } from '../../../src/http/dispatcher.ts'
import { closedObject, nullable } from '../../../src/http/openapi/schemas.ts'

const Row = closedObject('Row', 'A row.', {
  id: Type.String(),
  note: Type.Optional(nullable(Type.String())),
  sizes: Type.Unsafe<Record<string, string>>({
    type: 'object',
    properties: { thumb: Type.String() },
    additionalProperties: Type.String(),
  }),
})

test('a response has only the members that its schema names, also in lists and inside other objects', () => {
  const serialize = createSerializer({
    schema: closedObject('Rows', 'Rows.', { data: Type.Array(Row), first: Row, next: Type.String() }),
  })
  const row = { secret: 'x', sizes: { thumb: 'a', large: 'b' }, id: '1', note: null }
  const shown = { id: '1', note: null, sizes: { thumb: 'a', large: 'b' } }
  expect(serialize({ data: [row, { ...row, note: undefined }], first: row, other: 1, next: 'n' })).toBe(
    JSON.stringify({ data: [shown, { id: '1', sizes: shown.sizes }], first: shown, next: 'n' }),
  )
  expect(serialize({ data: [], first: null })).toBe('{"data":[],"first":null}')
})
