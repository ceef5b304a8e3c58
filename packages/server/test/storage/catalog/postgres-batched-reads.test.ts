import { expect, test } from 'vitest'
import { createBatchedReads } from '../../../src/storage/catalog/engines/postgres/postgres-catalog.ts'
import { asFault, ConnectionLost } from '../../../src/storage/catalog/engines/postgres/session.ts'

/** Requests the keys 1 to 3, each a batch of its own, whose reads fail with this error. Returns the keys that were read. */
async function failing(error: unknown): Promise<number[]> {
  const attempted: number[] = []
  const { read } = createBatchedReads({
    concurrency: 1,
    limit: 1,
    identify: (key: number) => key,
    async readAll(keys) {
      attempted.push(...keys)
      throw error
    },
  })
  const settled = await Promise.allSettled([read(1), read(2), read(3)])
  expect(settled.map(({ status }) => status)).toEqual(Array(3).fill('rejected'))
  return attempted
}

test('if the database cannot be reached, the reads that wait are rejected without further attempts', async () => {
  expect(await failing(asFault(new ConnectionLost('no response')))).toEqual([1])
})

test('any other error fails only the reads of its batch', async () => {
  expect(await failing(new Error('no such row'))).toEqual([1, 2, 3])
})
