import fc from 'fast-check'
import { expect, test } from 'vitest'
import { itemsAround, knownList, reach } from './known-list.ts'

const length = 200
const list = Array.from({ length }, (_, index) => `${index}`)
const end = fc.nat({ max: length })
/** A part of the list, perhaps empty. */
const part = fc.tuple(end, end).map(([a, b]) => {
  const [first, last] = [Math.min(a, b), Math.max(a, b)]
  return { ids: list.slice(first, last), before: first, after: length - last }
})

test('G18 the neighbours of an item stay known when another part of the list is loaded', () => {
  fc.assert(
    fc.property(part, part, end, (swiped, loaded, index) => {
      const open = `${index}`
      const { ids, loadedAt } = knownList(loaded, swiped.ids, open)
      const isJoined = loaded.ids.some((id) => swiped.ids.includes(id))
      const isElsewhere = !isJoined && swiped.ids.includes(open) && !loaded.ids.includes(open)
      const first = Math.min(loaded.before, isJoined ? swiped.before : length)
      const joined = list.slice(first, length - Math.min(loaded.after, isJoined ? swiped.after : length))
      expect(ids).toEqual(isElsewhere ? swiped.ids : joined)
      expect(loadedAt).toBe(isElsewhere ? null : loaded.before - first)
    }),
  )
})

test('G18 an item that left the list has no neighbours', () => {
  const swiped = ['1', '2', '3']
  expect(knownList({ ids: ['1', '3'], before: 0, after: 0 }, swiped, '2').ids).toEqual(['1', '3'])
  expect(knownList({ ids: [], before: 0, after: 0 }, swiped, '2').ids).toEqual([])
})

test('the items to swipe through change only at their ends, and when one of them left the list', () => {
  const known = list.slice(10, 150)
  const around = itemsAround(known, [], '80')
  expect(around).toEqual(list.slice(80 - reach, 80 + reach + 1))
  expect(itemsAround(known, around, '109')).toBe(around)
  expect(itemsAround(known, around, '110')).toEqual(list.slice(80, 141))
  const without = known.filter((id) => id !== '82')
  expect(itemsAround(without, around, '81')).toEqual(without.slice(71 - reach, 71 + reach + 1))
  expect(itemsAround(known, around, '5')).toBe(around)
})
