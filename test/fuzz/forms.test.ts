import { expect, test } from 'vitest'
import { fuzzForms } from './forms.ts'

test('U1, U10 random forms are read exactly; mutated ones are refused or read exactly', async () => {
  const { read, refused } = await fuzzForms(2_000)
  expect(Math.min(read, refused)).toBeGreaterThan(100)
})
