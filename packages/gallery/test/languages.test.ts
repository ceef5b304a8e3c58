import { expect, test } from 'vitest'
import { buckets as bucketsDe } from '../src/strings/buckets/de.ts'
import { buckets as bucketsEn } from '../src/strings/buckets/en.ts'
import { buckets as bucketsEs } from '../src/strings/buckets/es.ts'
import { de } from '../src/strings/de.ts'
import { deletion as deletionDe } from '../src/strings/deletion/de.ts'
import { deletion as deletionEn } from '../src/strings/deletion/en.ts'
import { deletion as deletionEs } from '../src/strings/deletion/es.ts'
import { details as detailsDe } from '../src/strings/details/de.ts'
import { details as detailsEn } from '../src/strings/details/en.ts'
import { details as detailsEs } from '../src/strings/details/es.ts'
import { en } from '../src/strings/en.ts'
import { es } from '../src/strings/es.ts'
import { labels as labelsDe } from '../src/strings/labels/de.ts'
import { labels as labelsEn } from '../src/strings/labels/en.ts'
import { labels as labelsEs } from '../src/strings/labels/es.ts'
import { links as linksDe } from '../src/strings/links/de.ts'
import { links as linksEn } from '../src/strings/links/en.ts'
import { links as linksEs } from '../src/strings/links/es.ts'
import { formatCount } from '../src/strings/locale.ts'
import { selected as selectedDe } from '../src/strings/selected/de.ts'
import { selected as selectedEn } from '../src/strings/selected/en.ts'
import { selected as selectedEs } from '../src/strings/selected/es.ts'
import { slides as slidesDe } from '../src/strings/slides/de.ts'
import { slides as slidesEn } from '../src/strings/slides/en.ts'
import { slides as slidesEs } from '../src/strings/slides/es.ts'
import { tokens as tokensDe } from '../src/strings/tokens/de.ts'
import { tokens as tokensEn } from '../src/strings/tokens/en.ts'
import { tokens as tokensEs } from '../src/strings/tokens/es.ts'
import { trash as trashDe } from '../src/strings/trash/de.ts'
import { trash as trashEn } from '../src/strings/trash/en.ts'
import { trash as trashEs } from '../src/strings/trash/es.ts'
import { uploads as uploadsDe } from '../src/strings/uploads/de.ts'
import { uploads as uploadsEn } from '../src/strings/uploads/en.ts'
import { uploads as uploadsEs } from '../src/strings/uploads/es.ts'
import { webhooks as webhooksDe } from '../src/strings/webhooks/de.ts'
import { webhooks as webhooksEn } from '../src/strings/webhooks/en.ts'
import { webhooks as webhooksEs } from '../src/strings/webhooks/es.ts'
import { browserLanguage, languages, loadTexts, showLanguage, strings } from '../src/strings.ts'

/** The paths of all texts, with the number of their parameters. */
function keysOf(texts: object, path = ''): string[] {
  return Object.entries(texts).flatMap(([key, text]: [string, unknown]) =>
    typeof text === 'object' && text !== null
      ? keysOf(text, `${path}${key}.`)
      : [`${path}${key} ${typeof text} ${typeof text === 'function' ? text.length : ''}`],
  )
}

test.each([
  ['all pages', en, de, es],
  ['buckets', bucketsEn, bucketsDe, bucketsEs],
  ['deletions', deletionEn, deletionDe, deletionEs],
  ['details', detailsEn, detailsDe, detailsEs],
  ['labels', labelsEn, labelsDe, labelsEs],
  ['upload links', linksEn, linksDe, linksEs],
  ['selected files', selectedEn, selectedDe, selectedEs],
  ['slides', slidesEn, slidesDe, slidesEs],
  ['tokens', tokensEn, tokensDe, tokensEs],
  ['the trash', trashEn, trashDe, trashEs],
  ['uploads', uploadsEn, uploadsDe, uploadsEs],
  ['webhooks', webhooksEn, webhooksDe, webhooksEs],
])('every language has all texts of %s, with the same parameters', (_, english, german, spanish) => {
  for (const texts of [german, spanish]) expect(keysOf(texts)).toEqual(keysOf(english))
})

test('the languages by their own names', () => {
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

test('texts of a page are loaded in the language that is shown, and follow it', async () => {
  const shown = showLanguage('de')
  await loadTexts('webhooks')
  expect(strings.webhooks.test).toBe(webhooksDe.test)
  await shown
  await showLanguage('es')
  expect(strings.webhooks.test).toBe(webhooksEs.test)
  await showLanguage('en')
  expect([strings.webhooks.test, strings.done]).toEqual([webhooksEn.test, en.done])
})

test('the language is the first of the browser that the page has, or English', () => {
  expect(browserLanguage(['fr-FR', 'de-AT', 'en'])).toBe('de')
  expect(browserLanguage(['es'])).toBe('es')
  expect(browserLanguage(['fr', 'constructor'])).toBe('en')
})
