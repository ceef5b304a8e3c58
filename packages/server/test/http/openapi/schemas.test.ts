import fc from 'fast-check'
import type { Static } from 'typebox'
import { Value } from 'typebox/value'
import { expect, expectTypeOf, test } from 'vitest'
import type { TokenObject } from '../../../src/access/tokens.ts'
import * as core from '../../../src/core/page.ts'
import { parsePageNumber } from '../../../src/core/page.ts'
import { ListingQuery } from '../../../src/http/openapi/parameters.ts'
import type * as tokens from '../../../src/http/openapi/schemas.ts'
import * as schemas from '../../../src/http/openapi/schemas.ts'
import type { ProblemDetails } from '../../../src/http/problems.ts'
import type * as item from '../../../src/items/items.ts'

/** Static types of schemas are not readonly. */
type Frozen<T> = T extends object ? { readonly [K in keyof T]: Frozen<T[K]> } : T

// Checked by the compiler.
test('the schemas of responses have the types of the returned objects', () => {
  expectTypeOf<Frozen<Static<typeof schemas.Page>>>().toEqualTypeOf<Frozen<core.Page>>()
  expectTypeOf<Frozen<Static<typeof schemas.MediaObject>>>().toEqualTypeOf<Frozen<item.MediaObject>>()
  expectTypeOf<Frozen<Static<typeof tokens.TokenObject>>>().toEqualTypeOf<Frozen<TokenObject>>()
  expectTypeOf<Frozen<Static<typeof schemas.Problem>>>().toEqualTypeOf<Frozen<ProblemDetails>>()
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
