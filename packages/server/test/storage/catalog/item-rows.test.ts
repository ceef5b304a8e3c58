import { expect, test } from 'vitest'
import { newItemMembers } from '../../../src/storage/catalog/items/item-columns.ts'
import { newItemValues, storedValue } from '../../../src/storage/catalog/items/item-rows.ts'
import { completeItem } from './samples.ts'

test('the values of a new item are those of all its members', () => {
  const item = completeItem()
  const values = newItemMembers.map((member) => storedValue(item, member))
  expect(values).not.toContain(null)
  expect(newItemValues(item)).toEqual(values)
})
