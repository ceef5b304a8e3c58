import { itemKinds } from '@mediabucket/client/rules'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { SearchTerms } from '../core/names.ts'
import { itemOrders } from '../core/queries.ts'
import type { BucketId, ItemSelection } from '../storage/catalog/records.ts'
import { createItemCursors } from './item-list-operations.ts'

const word = fc.string({ minLength: 1 })
const selections = fc.record({
  bucketId: fc.integer({ min: 1 }).map((id) => id as BucketId),
  order: fc.constantFrom(...itemOrders),
  by: fc.constantFrom(null, 'taken' as const),
  kind: fc.constantFrom(null, ...itemKinds),
  from: fc.option(fc.integer()),
  to: fc.option(fc.integer()),
  name: fc.option(
    fc.tuple(word, word).map(([word, other]): SearchTerms => (word === other ? [word] : [word, other])),
  ),
  sha256: fc.option(fc.constantFrom('00', '11')),
  // A filter that a later version has.
  later: fc.option(fc.nat(2)),
})
const places = fc.record({
  seq: fc.maxSafeNat(),
  createdAt: fc.integer({ min: -62_167_219_200_000, max: 253_402_300_799_999 }),
})
const isSame = (one: ItemSelection, other: ItemSelection) => JSON.stringify(one) === JSON.stringify(other)
const malformed = expect.objectContaining({ code: 'cursor-malformed' })

test('K6 a cursor is URL-safe and leads to its place, in its own list only', () => {
  const cursors = createItemCursors('epoch')
  fc.assert(
    fc.property(selections, selections, places, fc.maxSafeNat(), (selection, other, place, revision) => {
      const cursor = cursors.format(selection, place, revision)
      expect(cursor).toMatch(/^[\w-]{1,100}$/)
      expect(cursors.parse(selection, cursor)).toEqual({ place, revision })
      expect(() => createItemCursors('restored').parse(selection, cursor)).toThrow(malformed)
      if (!isSame(selection, other)) expect(() => cursors.parse(other, cursor)).toThrow(malformed)
    }),
  )
})

test('K6, K20 a cursor of a list by name leads to its key', () => {
  const cursors = createItemCursors('epoch')
  fc.assert(
    fc.property(
      selections,
      places,
      fc.string({ unit: 'grapheme', maxLength: 100 }),
      (selection, place, name) => {
        const byName = { ...selection, by: 'name' } as const
        const cursor = cursors.format(byName, { ...place, name }, 7)
        expect(cursors.parse(byName, cursor)).toEqual({ place: { ...place, name }, revision: 7 })
        expect(() => cursors.parse({ ...selection, by: null }, cursor)).toThrow(malformed)
      },
    ),
  )
})

test('K6 a changed cursor, and any other text, is refused', () => {
  const cursors = createItemCursors('epoch')
  const selection = {
    bucketId: 1 as BucketId,
    order: 'oldest',
    kind: null,
    from: null,
    to: null,
    name: null,
  } as const
  const cursor = cursors.format(selection, { seq: 17, createdAt: 1_790_000_000_000 }, 12)
  fc.assert(
    fc.property(fc.nat({ max: cursor.length - 1 }), fc.stringMatching(/^[\w-]$/), (index, letter) => {
      fc.pre(cursor[index] !== letter)
      const changed = cursor.slice(0, index) + letter + cursor.slice(index + 1)
      expect(() => cursors.parse(selection, changed)).toThrow(malformed)
    }),
  )
  fc.assert(
    fc.property(fc.string(), (text) => {
      expect(() => cursors.parse(selection, text)).toThrow(malformed)
    }),
  )
})
