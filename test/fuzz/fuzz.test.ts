import { expect, test } from 'vitest'
import { testSeed } from '../harness/random.ts'
import { fuzz, kindNames } from './fuzz.ts'

test('P1, P3, U2, R6, L4 hostile input of every kind is answered as documented, and nothing stored is lost', async () => {
  const { figures } = await fuzz({ rounds: 1, seed: testSeed(), onRound: () => false })
  expect([...figures.keys()]).toEqual([...kindNames, 'checks'])
  expect([...figures.values()].flatMap(({ failures }) => failures)).toEqual([])
})
