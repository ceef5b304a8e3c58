import { ConnectionError } from '@mediabucket/client'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { createConnection } from '../src/service/connection.ts'

beforeEach(() => {
  vi.useFakeTimers()
  vi.stubGlobal('addEventListener', vi.fn())
  vi.stubGlobal('removeEventListener', vi.fn())
})
afterEach(() => {
  vi.useRealTimers()
  vi.unstubAllGlobals()
})

test('G12 the connection is restored within two seconds after the server is back, however long it was gone', async () => {
  let gone = true
  const connection = createConnection(
    async () => {
      if (gone) throw new ConnectionError('gone')
    },
    () => undefined,
  )
  let restored = 0
  connection.onRestored(() => {
    restored += 1
  })
  connection.reportLoss()
  await vi.advanceTimersByTimeAsync(120_000)
  expect([connection.lost.value, restored]).toEqual([true, 0])
  gone = false
  await vi.advanceTimersByTimeAsync(2000)
  expect([connection.lost.value, restored]).toEqual([false, 1])
  connection.close()
})
