import { foldName, nameKey } from '@mediabucket/client/rules'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { compareNames, firstLetterOf } from '../src/timeline/name-order.ts'

const pieces = [
  'a',
  'B',
  'Ä',
  'ß',
  'é',
  'ς',
  '0',
  '00',
  '7',
  '10',
  '99999999999',
  '.',
  '_',
  ' ',
  '日',
  'が',
  '🗺',
  '~',
  'ﬁ',
  '５',
]
const names = fc.oneof(
  fc.array(fc.constantFrom(...pieces), { maxLength: 130 }).map((parts) => parts.join('')),
  fc.string({ unit: 'grapheme', maxLength: 20 }),
)

test('K20, G18 the order of names in the gallery is that of the service', () => {
  const keyOf = (name: string) => Buffer.from(nameKey(foldName(name)))
  fc.assert(
    fc.property(names, names, (one, other) => {
      expect(Math.sign(compareNames(one, other))).toBe(Buffer.compare(keyOf(one), keyOf(other)))
    }),
  )
})

test('G18 the files of each first letter follow one another', () => {
  fc.assert(
    fc.property(fc.array(names, { maxLength: 20 }), (list) => {
      const letters = list.toSorted(compareNames).map(firstLetterOf)
      const groups = letters.filter((letter, index) => letter !== letters[index - 1])
      expect(new Set(groups).size).toBe(groups.length)
    }),
  )
  expect(['IMG_2.jpg', 'öl', '007', '_a', null].map(firstLetterOf)).toEqual(['I', 'O', '0–9', '_', ''])
})
