import fc from 'fast-check'
import { Value } from 'typebox/value'
import { expect, expectTypeOf, test } from 'vitest'
import * as core from '../../../src/core/page.ts'
import { parsePageNumber } from '../../../src/core/page.ts'
import { ListingQuery } from '../../../src/http/openapi/parameters.ts'
import * as schemas from '../../../src/http/openapi/schemas.ts'

// Checked by the compiler.
test('the schema of a page has the type of the rendered pages', () => {
  expectTypeOf<schemas.ValueOf<typeof schemas.Page>>().toEqualTypeOf<core.Page>()
})

test('L2 the schema of a page has its members in the order of the response', () => {
  const form = { baseUrl: 'http://x', extensions: true, links: 'all' } as const
  expect(Object.keys(schemas.Page.properties)).toEqual(Object.keys(core.pageObject(form, 1, 0, [])))
})

const accepts = (text: string): boolean => {
  try {
    parsePageNumber(text)
    return true
  } catch {
    return false
  }
}

test('L11 parsePageNumber accepts exactly the integers that the schema describes', () => {
  const { page } = ListingQuery.properties
  fc.assert(
    fc.property(fc.oneof(fc.maxSafeInteger(), fc.double(), fc.bigInt().map(Number)), (number) => {
      expect([number, accepts(`${number}`)]).toEqual([number, Value.Check(page, number)])
    }),
  )
})
