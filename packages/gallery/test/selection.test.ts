import { expect, test } from 'vitest'
import { rangeBetween } from '../src/selection/range-between.ts'
import { createSelection } from '../src/selection/selection.ts'

const page = ['a', 'b', 'c', 'd', 'e']

test('a range runs between two entries in either direction; without a beginning it is its end alone', () => {
  expect(rangeBetween(page, 'b', 'd')).toEqual(['b', 'c', 'd'])
  expect(rangeBetween(page, 'd', 'b')).toEqual(['b', 'c', 'd'])
  expect(rangeBetween(page, null, 'b')).toEqual(['b'])
  expect(rangeBetween(page, 'of another page', 'b')).toEqual(['b'])
  expect(rangeBetween(page, 'a', 'gone')).toEqual([])
})

test('a selection is picked one by one and by ranges, across pages, and loses what is deleted', () => {
  const selection = createSelection()
  const picked = () => [...selection.ids.value].join('')
  selection.toggle('b')
  selection.extendTo('d', page)
  expect(picked()).toBe('bcd')
  selection.toggle('c')
  selection.extendTo('z', ['x', 'y', 'z'])
  expect(picked()).toBe('bdz')
  selection.remove(['d'])
  expect([picked(), selection.count.value]).toEqual(['bz', 2])
  selection.clear()
  selection.extendTo('c', page)
  expect(picked()).toBe('c')
})
