import { expect, test } from 'vitest'
import { filesBelow, read } from './sources.ts'

const rules = [...read('docs/interface.md').matchAll(/^- \*\*([A-Z]+\d+)\*\* /gm)].map(
  ([, rule]) => rule ?? '',
)

/** The names of all tests, in any quotes, including those in tables. */
const testNames = ['test', 'packages']
  .flatMap(filesBelow)
  .flatMap((path) =>
    [...read(path).matchAll(/(?:\b(?:test|it|describe)(?:\.\w+)*|\))\(\s*(['"`])(.*?)\1/g)].map(
      ([, , name]) => name ?? '',
    ),
  )

/** The letters of a rule. */
const familyOf = (rule: string): string => rule.replace(/\d+$/, '')

test('the rules of docs/interface.md are numbered without gap or repetition', () => {
  const expected = [...new Set(rules.map(familyOf))].flatMap((family) =>
    rules.filter((rule) => familyOf(rule) === family).map((_, index) => `${family}${index + 1}`),
  )
  expect(rules.length).toBeGreaterThan(50)
  expect(rules).toEqual(expected)
})

test('every rule of docs/interface.md has a test that cites it', () => {
  const cited = new Set(testNames.flatMap((name) => name.match(/\b[A-Z]+\d+\b/g) ?? []))
  expect(rules.filter((rule) => !cited.has(rule))).toEqual([])
})

test('no test cites a rule that docs/interface.md lacks', () => {
  const families = new Set(rules.map(familyOf))
  const cited = testNames.flatMap((name) => name.match(/^(?:[A-Z]+\d+[ ,]+)+/)?.[0].match(/[A-Z]+\d+/g) ?? [])
  expect(cited.filter((rule) => families.has(familyOf(rule)) && !rules.includes(rule))).toEqual([])
})
