import fc from 'fast-check'
import { expect, test } from 'vitest'
import { Fault } from './fault.ts'
import { parsePageNumber } from './page-number.ts'

const refusal = (value: string | readonly string[]): unknown => {
  try {
    return parsePageNumber(value)
  } catch (error) {
    return error
  }
}

test('L11 without the parameter the page is 1', () => {
  expect(parsePageNumber(undefined)).toBe(1)
})

test('L11 every integer from 1 to 2^53 - 1 is a page number', () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: Number.MAX_SAFE_INTEGER }), (page) => {
      expect(parsePageNumber(`${page}`)).toBe(page)
    }),
  )
  expect(parsePageNumber('9007199254740991')).toBe(9007199254740991)
  expect(parsePageNumber(['7'])).toBe(7)
})

test.each([
  ['zero', '0'],
  ['a sign', '-1'],
  ['a plus', '+1'],
  ['a leading zero', '02'],
  ['a fraction', '1.5'],
  ['an exponent', '1e3'],
  ['a space', ' 1'],
  ['a line end', '1\n'],
  ['nothing', ''],
  ['a word', 'abc'],
  ['hexadecimal', '0x1'],
  ['foreign digits', '١'],
  ['2^53', '9007199254740992'],
  ['what rounds to 2^53', '9007199254740993'],
  ['400 digits', '9'.repeat(400)],
  ['a repeated parameter', ['1', '2']],
  ['a parameter repeated alike', ['1', '1']],
  ['an empty list', []],
])('L11 %s is refused, with the parameter and the values that it accepts', (_, value) => {
  const fault = refusal(value)
  expect(fault).toBeInstanceOf(Fault)
  expect(fault).toMatchObject({ code: 'page-malformed', parameters: [{ parameter: 'page' }] })
  expect(fault).toHaveProperty('message', expect.stringContaining('9007199254740991'))
  expect(fault).toHaveProperty('parameters.0.detail', expect.stringContaining('9007199254740991'))
})

test('L11 a text is a page number only if it is the canonical form of the number', () => {
  fc.assert(
    fc.property(fc.oneof(fc.string(), fc.stringMatching(/^[-+ 0-9.eE]{1,20}$/)), (text) => {
      const number = Number(text)
      const wellFormed = number >= 1 && Number.isSafeInteger(number) && `${number}` === text
      expect(typeof refusal(text) === 'number').toBe(wellFormed)
    }),
  )
})
