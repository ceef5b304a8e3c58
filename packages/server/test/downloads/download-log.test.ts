import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { service } from '../../src/core/token-rules.ts'
import { DownloadLog } from '../../src/downloads/download-log.ts'
import type { AuditEvent } from '../../src/storage/catalog/audit/audit-events.ts'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

const download = (target: number | string): AuditEvent => ({
  action: 'download',
  by: service,
  bucketId: null,
  target: `${target}`,
})

/** A log whose batches are in `batches`; while `isBroken`, none can be stored. */
function newLog(limit?: number) {
  const batches: (readonly AuditEvent[])[] = []
  const state = { isBroken: false, isFull: false, losses: 0, failures: 0 }
  const log = new DownloadLog({
    catalog: {
      async recordEvents(events) {
        if (state.isBroken) throw new Error('broken')
        batches.push(events)
      },
    },
    now: Date.now,
    ...(limit !== undefined && { limit }),
    hasRoom: () => !state.isFull,
    onLoss(count) {
      state.losses += count
    },
    onFailure() {
      state.failures += 1
    },
  })
  return { log, batches, state, targets: () => batches.flat().map(({ target }) => target) }
}

test('Y8 events are stored after a second, with the times of their downloads', async () => {
  const { log, batches } = newLog()
  const start = Date.now()
  log.record(download('a'))
  await vi.advanceTimersByTimeAsync(600)
  log.record(download('b'))
  await vi.advanceTimersByTimeAsync(399)
  expect(batches).toEqual([])
  await vi.advanceTimersByTimeAsync(1)
  expect(batches).toEqual([
    [
      { ...download('a'), time: start },
      { ...download('b'), time: start + 600 },
    ],
  ])
  await vi.advanceTimersByTimeAsync(10_000)
  expect(batches).toHaveLength(1)
})

test('Y8 500 events are stored at once, in one batch', async () => {
  const { log, batches } = newLog()
  for (let index = 0; index < 1_234; index += 1) log.record(download(index))
  await vi.advanceTimersByTimeAsync(0)
  expect(batches.map(({ length }) => length)).toEqual([500, 500])
  await vi.advanceTimersByTimeAsync(1_000)
  expect(batches.map(({ length }) => length)).toEqual([500, 500, 234])
})

test('Y8 a failed batch is stored later; events beyond the limit are counted, and their number is stored', async () => {
  const { log, state, targets, batches } = newLog(3)
  state.isBroken = true
  for (const target of 'abcde') log.record(download(target))
  expect(state.losses).toBe(2)
  await vi.advanceTimersByTimeAsync(2_500)
  expect(state.failures).toBe(2)
  state.isBroken = false
  await vi.advanceTimersByTimeAsync(1_000)
  expect(targets()).toEqual(['a', 'b', 'c', null])
  expect(batches.flat().at(-1)).toMatchObject({ action: 'downloads-lost', by: service, detail: { count: 2 } })
  log.record(download('f'))
  await vi.advanceTimersByTimeAsync(1_000)
  expect(targets()).toEqual(['a', 'b', 'c', null, 'f'])
})

test('Y8 while the disk is nearly full, downloads are counted, and their number is stored once there is space', async () => {
  const { log, state, targets, batches } = newLog()
  state.isFull = true
  for (let index = 0; index < 700; index += 1) log.record(download(index))
  await vi.advanceTimersByTimeAsync(2_000)
  expect(state.losses).toBe(700)
  expect(batches).toEqual([])
  state.isFull = false
  await vi.advanceTimersByTimeAsync(1_000)
  expect(batches.flat()).toMatchObject([{ action: 'downloads-lost', detail: { count: 700 } }])
  log.record(download('a'))
  expect(await log.close()).toBe(0)
  expect(targets()).toEqual([null, 'a'])
  state.isFull = true
  log.record(download('b'))
  expect(await log.close()).toBe(1)
  expect(vi.getTimerCount()).toBe(0)
})

test('Y8 closing stores what is waiting; it ends while nothing can be stored', async () => {
  const { log, state, targets } = newLog()
  for (let index = 0; index < 1_001; index += 1) log.record(download(index))
  expect(await log.close()).toBe(0)
  expect(targets()).toHaveLength(1_001)
  state.isBroken = true
  log.record(download('last'))
  expect(await log.close()).toBe(1)
  expect(vi.getTimerCount()).toBe(0)
})
