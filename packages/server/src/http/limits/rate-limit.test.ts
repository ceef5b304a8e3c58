import fc from 'fast-check'
import { expect, test } from 'vitest'
import { createRateLimit } from './rate-limit.ts'

/** A limit on a clock that the test moves. */
function limitAt(requests: number, window: number, keys?: number) {
  const clock = { at: 1000 }
  const limit = createRateLimit({ requests, window }, () => clock.at, keys)
  return { clock, take: limit.take }
}

const accepted = (take: (key: string) => number, key: string, tries: number) =>
  Array.from({ length: tries }, () => take(key)).filter((wait) => wait === 0).length

test('W2 a limit accepts all its requests at once, and the next one after its share of the window', () => {
  const { clock, take } = limitAt(10, 5000)
  expect(accepted(take, 'a', 12)).toBe(10)
  expect(take('a')).toBeCloseTo(500)
  clock.at += 499
  expect(take('a')).toBeGreaterThan(0)
  clock.at += 1
  expect(take('a')).toBe(0)
  expect(take('a')).toBeCloseTo(500)
  clock.at += 5000
  expect(accepted(take, 'a', 12)).toBe(10)
})

test('W2 keys are counted separately', () => {
  const { take } = limitAt(2, 1000)
  expect([accepted(take, 'a', 5), accepted(take, 'b', 5)]).toEqual([2, 2])
})

test('W2 in any period no more requests are accepted than the limit and its refill, and refused ones do not count', () => {
  fc.assert(
    fc.property(
      fc.record({
        requests: fc.integer({ min: 1, max: 50 }),
        window: fc.integer({ min: 1, max: 60 }).map((seconds) => seconds * 1000),
        steps: fc.array(fc.nat({ max: 5000 }), { maxLength: 300 }),
      }),
      ({ requests, window, steps }) => {
        const { clock, take } = limitAt(requests, window)
        let taken = 0
        for (const step of steps) {
          clock.at += step
          const wait = take('a')
          if (wait === 0) taken += 1
          // A request after the returned time is always accepted.
          else expect(limitedUntil(clock.at + wait, steps, requests, window)).toBe(true)
        }
        expect(taken).toBeLessThanOrEqual(requests + ((clock.at - 1000) * requests) / window + 1e-6)
      },
    ),
  )

  function limitedUntil(at: number, steps: readonly number[], requests: number, window: number): boolean {
    const { clock, take } = limitAt(requests, window)
    for (const step of steps) {
      if (clock.at + step >= at) break
      clock.at += step
      take('a')
    }
    clock.at = at
    return take('a') === 0
  }
})

test('W6 memory is limited: unused keys are dropped, used ones stay', () => {
  const { take } = limitAt(2, 1_000_000, 100)
  expect(accepted(take, 'busy', 5)).toBe(2)
  expect(accepted(take, 'idle', 5)).toBe(2)
  for (let i = 0; i < 1000; i += 1) {
    take(`other ${i}`)
    if (i % 50 === 0) expect(take('busy')).toBeGreaterThan(0)
  }
  expect(take('idle')).toBe(0)
})

test('W6 a used key stays if its own request starts a new generation', () => {
  const { take } = limitAt(1, 1_000_000, 1)
  expect(take('a')).toBe(0)
  expect(take('b')).toBe(0)
  expect(take('a')).toBeGreaterThan(0)
})

test('O11 requests that another process accepted count, also beyond the quota', () => {
  let at = 0
  const { take, add } = createRateLimit({ requests: 10, window: 10_000 }, () => at)
  add('a', 9)
  expect(take('a')).toBe(0)
  expect(take('a')).toBeCloseTo(1_000)
  // Two processes accepted 15 requests at once: five more than the quota are waited for.
  add('a', 5)
  expect(take('a')).toBeCloseTo(6_000)
  at = 6_000
  expect(take('a')).toBe(0)
})
