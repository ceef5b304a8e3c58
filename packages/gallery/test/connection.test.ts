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

test('G12 however long the service was gone, its return is noticed within two seconds', async () => {
  let gone = true
  const connection = createConnection(
    async () => {
      if (gone) throw new ConnectionError('gone')
    },
    () => undefined,
  )
  let back = 0
  connection.onBack(() => {
    back += 1
  })
  connection.report()
  await vi.advanceTimersByTimeAsync(120_000)
  expect([connection.lost.value, back]).toEqual([true, 0])
  gone = false
  await vi.advanceTimersByTimeAsync(2000)
  expect([connection.lost.value, back]).toEqual([false, 1])
  connection.close()
})
