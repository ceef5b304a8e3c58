import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { refreshWhileVisible } from '../src/service/changes.ts'

beforeEach(() => {
  vi.useFakeTimers()
  const target = { addEventListener: vi.fn(), removeEventListener: vi.fn() }
  vi.stubGlobal('document', { ...target, visibilityState: 'visible' })
  vi.stubGlobal('window', target)
  vi.stubGlobal('navigator', { onLine: true })
})
afterEach(() => {
  vi.useRealTimers()
  vi.unstubAllGlobals()
})

/** A page whose refreshes and whose feed the test controls. */
function openPage() {
  const refreshes: PromiseWithResolvers<boolean>[] = []
  let change = () => {}
  const stop = refreshWhileVisible({
    client: {
      latestCursor: async () => 'cursor',
      async *changes({ onResponse } = {}) {
        for (;;) {
          await new Promise<void>((resolve) => {
            change = resolve
          })
          onResponse?.()
          yield { type: 'item.removed', cursor: 'cursor', item_id: 'a', changed_at: '', item: null }
        }
      },
    },
    connection: { watch: (request) => request() },
    refresh() {
      const refresh = Promise.withResolvers<boolean>()
      refreshes.push(refresh)
      return refresh.promise
    },
  })
  return {
    refreshes,
    stop,
    /** Lets the feed respond with a change. */
    async change() {
      change()
      await vi.advanceTimersByTimeAsync(0)
    },
    /** Ends the latest refresh. */
    async finish(isCurrent = true) {
      refreshes.at(-1)?.resolve(isCurrent)
      await vi.advanceTimersByTimeAsync(0)
    },
  }
}

test('FE6, G8 a change that happens during a refresh is shown by the next one, a second after the beginning of the first', async () => {
  const { refreshes, stop, change, finish } = openPage()
  await vi.advanceTimersByTimeAsync(2_000)
  await finish()
  await change()
  await vi.advanceTimersByTimeAsync(1_000)
  expect(refreshes).toHaveLength(2)
  await change()
  await vi.advanceTimersByTimeAsync(5_000)
  // The list of the second may be older than the change. Two at once would lose one of the lists.
  expect(refreshes).toHaveLength(2)
  await finish()
  await vi.advanceTimersByTimeAsync(1_000)
  expect(refreshes).toHaveLength(3)
  await finish()
  await vi.advanceTimersByTimeAsync(40_000)
  expect(refreshes).toHaveLength(3)
  stop()
})

test('G8 without a feed that responds, the page is refreshed at an interval', async () => {
  const { refreshes, stop, finish } = openPage()
  await vi.advanceTimersByTimeAsync(2_000)
  for (let count = 1; count <= 3; count += 1) {
    expect(refreshes).toHaveLength(count)
    await finish()
    await vi.advanceTimersByTimeAsync(10_000)
  }
  stop()
})

test('G8 a change is shown within about a second, also after the clock of the machine was set back', async () => {
  const { refreshes, stop, change, finish } = openPage()
  await vi.advanceTimersByTimeAsync(2_000)
  await finish()
  vi.setSystemTime(Date.now() - 3_600_000)
  await change()
  await vi.advanceTimersByTimeAsync(1_000)
  expect(refreshes).toHaveLength(2)
  stop()
})
