import { expect, test, vi } from 'vitest'
import type { Fault } from '../../src/core/faults.ts'
import { received } from '../../src/storage/blobs/received-file.ts'
import type { BucketId } from '../../src/storage/catalog/records.ts'
import { type Scanner, scanFileOperation } from '../../src/uploads/scanner.ts'

/** A scanner that gives no verdict until `release`, and the outcomes of its scans. */
function scene({ isRunning, timeout }: { readonly isRunning: boolean; readonly timeout: number }) {
  const { promise: released, resolve: release } = Promise.withResolvers<void>()
  let scans = 0
  const scanner: Scanner = {
    scan: async () => {
      scans += 1
      await released
      return { outcome: 'clean' }
    },
    async check() {
      if (!isRunning) throw new Error('not running')
    },
  }
  const outcomes: string[] = []
  const scanFile = scanFileOperation({
    ...{ scanner, timeout, acceptsUnscanned: true },
    blobs: { openReceived: () => Promise.reject(new Error('not needed')) },
    onOutcome: (outcome) => void outcomes.push(outcome),
  })
  const file = received(Buffer.from('text'))
  return {
    scan: (bucket: number) => scanFile(file, bucket as BucketId),
    release,
    outcomes,
    scans: () => scans,
  }
}

const places = Array.from({ length: 8 }, (_, index) => (index % 2) + 1)

test('SC4 with accept, a file that gets no turn is refused while the scanner runs, and stored while it does not', async () => {
  for (const isRunning of [true, false]) {
    const { scan, release, outcomes, scans } = scene({ isRunning, timeout: 50 })
    const running = places.map(scan)
    const waiting = scan(1)
    if (isRunning)
      await expect(waiting).rejects.toMatchObject({ code: 'scanner-unavailable' } satisfies Partial<Fault>)
    else await waiting
    expect([scans(), outcomes]).toEqual([8, [isRunning ? 'busy' : 'failed']])
    release()
    await Promise.all(running)
  }
})

test('SC4 a file that had to wait for its turn has the whole time for its scan', async () => {
  const timers = vi.spyOn(AbortSignal, 'timeout')
  const { scan, release, outcomes } = scene({ isRunning: true, timeout: 60_000 })
  const running = places.map(scan)
  const waiting = scan(1)
  await vi.waitFor(() => expect(timers).toHaveBeenCalledTimes(8))
  release()
  await Promise.all([...running, waiting])
  expect(timers.mock.calls).toEqual(Array(9).fill([60_000]))
  expect(outcomes).toEqual(Array(9).fill('clean'))
})
