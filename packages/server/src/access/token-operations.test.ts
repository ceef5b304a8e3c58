import { expect, test } from 'vitest'
import type { TokenId } from '../storage/catalog/records.ts'
import { recordUseOperation } from './token-operations.ts'

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

test('a use is recorded if the last one is unknown or an hour old, not earlier', () => {
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

test('a failure is reported, and the next attempt to record follows after an hour', async () => {
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

test('after the clock is set back by a day, uses are still recorded once an hour', () => {
  const { recordUse, touches } = recording()
  recordUse({ tokenId: token, lastUsedAt: null }, noon)
  for (let request = 0; request < 10; request += 1)
    recordUse({ tokenId: token, lastUsedAt: noon }, noon - 24 * hour + request)
  expect(touches).toEqual([
    [token, noon],
    [token, noon - 24 * hour],
  ])
})

test('clocks of processes that differ by seconds cause no additional records', () => {
  const { recordUse, touches } = recording()
  recordUse({ tokenId: token, lastUsedAt: noon + 5000 }, noon)
  expect(touches).toEqual([])
})

test('the last 10,000 recorded tokens are remembered', () => {
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
