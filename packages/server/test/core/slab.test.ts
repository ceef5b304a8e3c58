import { setImmediate as nextTick } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { Slab } from '../../src/core/slab.ts'
import { collectAll, collectYoung, countInMemory } from '../minor-collection.ts'

test('values are removed by their keys, which are used again', () => {
  const slab = new Slab<{ name: string }>()
  const keys = ['a', 'b', 'c'].map((name) => slab.add({ name }))
  expect(new Set(keys).size).toBe(3)
  expect(slab.remove(keys[1] ?? -1)).toEqual({ name: 'b' })
  expect(slab.remove(keys[1] ?? -1)).toBeUndefined()
  expect(slab.remove(99)).toBeUndefined()
  expect([slab.size(), [...slab.values()].map(({ name }) => name)]).toEqual([2, ['a', 'c']])
  expect(slab.add({ name: 'd' })).toBe(keys[1])
  expect([...slab.values()].map(({ name }) => name)).toEqual(['a', 'd', 'c'])
  slab.clear()
  expect([slab.size(), [...slab.values()], slab.remove(keys[0] ?? -1)]).toEqual([0, [], undefined])
  expect([slab.add({ name: 'e' }), slab.size()]).toEqual([0, 1])
})

test('values can be removed during an iteration', () => {
  const slab = new Slab<{ key: number }>()
  for (let i = 0; i < 5; i += 1) {
    const value = { key: -1 }
    value.key = slab.add(value)
  }
  for (const { key } of slab.values()) slab.remove(key)
  expect(slab.size()).toBe(0)
})

test('collections of the young generation free removed values', async () => {
  const slab = new Slab<object>()
  const inUse: number[] = []
  for (let i = 0; i < 8; i += 1) inUse.push(slab.add({}))
  collectAll()
  const memory = countInMemory()
  for (let i = 0; i < 300; i += 1) {
    inUse.push(slab.add(memory.mark({})))
    slab.remove(inUse.shift() ?? -1)
    if (i % 30 !== 0) continue
    await nextTick()
    collectYoung()
  }
  await nextTick()
  // Eight are in use. A value that is in use during two collections moves to the old generation.
  expect(memory.count()).toBeLessThan(60)
})
