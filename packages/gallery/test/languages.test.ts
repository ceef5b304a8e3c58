import { expect, test } from 'vitest'
import { de } from '../src/strings/de.ts'
import { en } from '../src/strings/en.ts'
import { es } from '../src/strings/es.ts'
import { formatCount } from '../src/strings/locale.ts'
import { browserLanguage, languages, showLanguage, strings } from '../src/strings.ts'

/** The paths of all texts, with the number of their parameters. */
function keysOf(texts: object, path = ''): string[] {
  return Object.entries(texts).flatMap(([key, text]: [string, unknown]) =>
    typeof text === 'object' && text !== null
      ? keysOf(text, `${path}${key}.`)
      : [`${path}${key} ${typeof text} ${typeof text === 'function' ? text.length : ''}`],
  )
}

test('every language has all texts, with the same parameters', () => {
  for (const texts of [de, es]) expect(keysOf(texts)).toEqual(keysOf(en))
  expect(Object.keys(languages)).toEqual(['en', 'de', 'es'])
})

test('a language changes texts and numbers', async () => {
  await showLanguage('de')
  expect([strings.files(1234), formatCount(1234)]).toEqual(['1.234 Dateien', '1.234'])
  await showLanguage('es')
  expect(strings.files(1)).toBe('1 archivo')
  await showLanguage('en')
  expect(strings.files(1234)).toBe('1,234 files')
})

test('the language is the first of the browser that the page has, or English', () => {
  expect(browserLanguage(['fr-FR', 'de-AT', 'en'])).toBe('de')
  expect(browserLanguage(['es'])).toBe('es')
  expect(browserLanguage(['fr', 'constructor'])).toBe('en')
})
