import { expect, test } from 'vitest'
import { recordUseOperation } from '../../src/access/record-use.ts'
import type { TokenId } from '../../src/catalog/catalog.ts'

const hour = 3_600_000
const noon = Date.UTC(2026, 5, 1, 12)
const token = 'tok_a' as TokenId

function recording(touch: () => Promise<void> = async () => undefined) {
  const touches: [id: string, at: number][] = []
  const failures: unknown[] = []
  const recordUse = recordUseOperation({
    catalog: {
      touchToken: (id, at) => {
        touches.push([id, at])
        return touch()
      },
    },
    onTouchFailure: (error) => failures.push(error),
  })
  return { recordUse, touches, failures }
}

test('a use is recorded when the last one is unknown or an hour old, not before', () => {
  const { recordUse, touches } = recording()
  recordUse({ tokenId: token, lastUsedAt: noon - hour + 1 }, noon)
  expect(touches).toEqual([])
  recordUse({ tokenId: token, lastUsedAt: noon - hour }, noon)
  recordUse({ tokenId: 'tok_b' as TokenId, lastUsedAt: null }, noon)
  expect(touches).toEqual([
    [token, noon],
    ['tok_b', noon],
  ])
})

test('requests that see the same old time record one use', () => {
  const { recordUse, touches } = recording(() => new Promise(() => undefined))
  for (let request = 0; request < 100; request += 1)
    recordUse({ tokenId: token, lastUsedAt: null }, noon + request)
  expect(touches).toEqual([[token, noon]])
})

test('a failure is told, and the catalog is left alone for an hour', async () => {
  const { recordUse, touches, failures } = recording(() => Promise.reject(new Error('full')))
  recordUse({ tokenId: token, lastUsedAt: null }, noon)
  await Promise.resolve()
  await Promise.resolve()
  expect(failures).toEqual([new Error('full')])
  recordUse({ tokenId: token, lastUsedAt: null }, noon + hour - 1)
  expect(touches).toHaveLength(1)
  recordUse({ tokenId: token, lastUsedAt: null }, noon + hour)
  expect(touches).toHaveLength(2)
})

test('a clock set back a day does not stop the recording, nor make every request record', () => {
  const { recordUse, touches } = recording()
  recordUse({ tokenId: token, lastUsedAt: null }, noon)
  for (let request = 0; request < 10; request += 1)
    recordUse({ tokenId: token, lastUsedAt: noon }, noon - 24 * hour + request)
  expect(touches).toEqual([
    [token, noon],
    [token, noon - 24 * hour],
  ])
})

test('clocks that differ a little between processes record nothing more', () => {
  const { recordUse, touches } = recording()
  recordUse({ tokenId: token, lastUsedAt: noon + 5000 }, noon)
  expect(touches).toEqual([])
})

test('only so many tokens are remembered, the longest ago forgotten first', () => {
  const { recordUse, touches } = recording()
  const use = (index: number) => recordUse({ tokenId: `tok_${index}` as TokenId, lastUsedAt: null }, noon)
  for (let index = 0; index <= 10_000; index += 1) use(index)
  expect(touches).toHaveLength(10_001)
  use(10_000)
  use(1)
  expect(touches).toHaveLength(10_001)
  use(0)
  expect(touches).toHaveLength(10_002)
})
