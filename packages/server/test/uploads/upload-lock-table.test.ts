import { expect, test } from 'vitest'
import { until } from '../../../../test/harness/until.ts'
import { newUploadId } from '../../src/core/ids.ts'
import { UploadLockTable } from '../../src/uploads/upload-locks.ts'

const grace = 50

/** A process that records what happens to it. */
function process(events: string[], name: string, isStalled = true) {
  return {
    granted: () => void events.push(`${name} has the lock`),
    abort: () => void events.push(`${name} is aborted`),
    async abortIfStalled() {
      if (isStalled) events.push(`${name} is aborted`)
      return isStalled
    },
  }
}

test('O11 the lock passes in the order of the claims', () => {
  const table = new UploadLockTable({ grace })
  const [id, events] = [newUploadId(), [] as string[]]
  const claims = ['a', 'b', 'c'].map((name) => table.claim(id, process(events, name)))
  for (const claim of claims) claim.release()
  expect(events).toEqual(['a has the lock', 'b has the lock', 'c has the lock'])
  expect(table.isHeld(id)).toBe(false)
})

test('O11 after the grace period, a claim aborts the one before it, also if one between them ended', async () => {
  const table = new UploadLockTable({ grace })
  const [id, events] = [newUploadId(), [] as string[]]
  const first = table.claim(id, process(events, 'a'))
  const second = table.claim(id, process(events, 'b'))
  table.claim(id, process(events, 'c'))
  second.release()
  await until('the abortion', () => events.includes('a is aborted'))
  expect(events).toEqual(['a has the lock', 'a is aborted'])
  first.release()
  expect(events.at(-1)).toBe('c has the lock')
})

test('O11 waiting for a writer aborts it only if it is stalled', async () => {
  for (const isStalled of [true, false]) {
    const table = new UploadLockTable({ grace })
    const [id, events] = [newUploadId(), [] as string[]]
    const claim = table.claim(id, process(events, 'a', isStalled))
    const waiting = table.waitForWriter(id)
    if (isStalled) {
      await until('the abortion', () => events.includes('a is aborted'))
      claim.release()
    }
    await waiting
    expect(table.isHeld(id)).toBe(!isStalled)
  }
})
