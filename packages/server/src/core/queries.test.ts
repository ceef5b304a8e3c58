import fc from 'fast-check'
import { Value } from 'typebox/value'
import { expect, test } from 'vitest'
import { ItemListQuery } from '../http/openapi/parameters.ts'
import { parseItemsQuery } from './queries.ts'

const accepts = (query: Readonly<Record<string, unknown>>): boolean => {
  try {
    parseItemsQuery(query)
    return true
  } catch {
    return false
  }
}

test('K3 without parameters the list begins with the oldest items, a hundred at a time', () => {
  expect(ItemListQuery.properties).toMatchObject({ limit: { default: 100 }, order: { default: 'oldest' } })
  expect(parseItemsQuery({})).toEqual({
    limit: 100,
    order: 'oldest',
    kind: null,
    from: null,
    to: null,
    name: null,
    after: null,
  })
})

test.each([
  'label',
  'labels.album',
  'label[album]',
  'Label.album',
  'LABEL.x',
  'label_album',
  'label.Album',
  'label.',
])('K14 the parameter %s, which selects no label, is refused with the right form', (name) => {
  expect(() => parseItemsQuery({ [name]: '42' })).toThrow(/label\.KEY=VALUE.* lower case.* 200 characters/)
})

test('K14 parameters of labels and other unknown ones are accepted', () => {
  expect(parseItemsQuery({ 'label.album': '42', unlabelled: 'x' }).labels).toEqual({ album: '42' })
})

test('K20 a start of more than 255 bytes is refused with its limit', () => {
  const query = { order: 'name', start_name: 'x'.repeat(256) }
  expect(() => parseItemsQuery(query)).toThrow(/255 bytes/)
})

test('K3 parseItemsQuery accepts exactly the values that the schema describes', () => {
  const limits = fc.oneof(fc.integer({ min: -5, max: 600 }), fc.double(), fc.maxSafeInteger())
  const orders = fc.constantFrom('oldest', 'newest', '', 'OLDEST', 'toString')
  const kinds = fc.constantFrom('image', 'video', 'audio', 'document', 'other', '', 'images', '4')
  fc.assert(
    fc.property(limits, orders, kinds, (limit, order, kind) => {
      const query = { limit: `${limit}`, order, kind }
      expect([query, accepts(query)]).toEqual([query, Value.Check(ItemListQuery, { limit, order, kind })])
    }),
  )
})
