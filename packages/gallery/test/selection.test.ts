import { expect, test } from 'vitest'
import { createSelection, rangeBetween } from '../src/selection/selection.ts'

const page = ['a', 'b', 'c', 'd', 'e']

test('a range includes both ends, in either direction; without a start it is its end alone', () => {
  expect(rangeBetween(page, 'b', 'd')).toEqual(['b', 'c', 'd'])
  expect(rangeBetween(page, 'd', 'b')).toEqual(['b', 'c', 'd'])
  expect(rangeBetween(page, null, 'b')).toEqual(['b'])
  expect(rangeBetween(page, 'of another page', 'b')).toEqual(['b'])
  expect(rangeBetween(page, 'a', 'gone')).toEqual([])
})

test('files are selected one by one and by ranges, across pages, and deselected when deleted', () => {
  const selection = createSelection()
  const selected = () => [...selection.ids.value].join('')
  selection.toggle('b')
  selection.extendTo('d', page)
  expect(selected()).toBe('bcd')
  selection.toggle('c')
  selection.extendTo('z', ['x', 'y', 'z'])
  expect(selected()).toBe('bdz')
  selection.remove(['d'])
  expect([selected(), selection.count.value]).toEqual(['bz', 2])
  selection.clear()
  selection.extendTo('c', page)
  expect(selected()).toBe('c')
})
