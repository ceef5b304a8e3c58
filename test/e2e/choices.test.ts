import type { Browser } from 'playwright-core'
import { beforeAll, expect, test } from 'vitest'
import { de } from '../../packages/gallery/src/strings/de.ts'
import { details as detailsInGerman } from '../../packages/gallery/src/strings/details/de.ts'
import { details as detailsInSpanish } from '../../packages/gallery/src/strings/details/es.ts'
import { es } from '../../packages/gallery/src/strings/es.ts'
import { strings } from '../../packages/gallery/src/strings.ts'
import { sharedBrowser } from '../harness/chromium.ts'
import type { SharedServer } from '../harness/server.ts'
import { sharedServer } from '../harness/shared-server.ts'
import { upload } from '../harness/upload.ts'
import { expectAccessible } from './accessibility.ts'
import { picture, tone } from './files.ts'
import { visit } from './visit.ts'

let browser: Browser
let server: SharedServer
beforeAll(async () => {
  server = await sharedServer()
  browser = await sharedBrowser()
  await upload(server, new Uint8Array(await picture(1).jpeg().toBuffer()), { name: 'harbour.jpg' })
  await upload(server, new Uint8Array(tone()), { name: 'tone.wav' })
  await upload(server, 'Notes.', { name: 'notes.txt' })
})

const matches = (count: number) => strings.filter.matches({ count, isExact: true })

test('K8, G33 the kind and the time select files; the page says how many match', async () => {
  await using guest = await visit(browser, server, { hash: '' })
  await guest.signIn(server.token)
  const { page } = guest
  const tiles = page.locator('.timeline .tile')
  await tiles.nth(2).waitFor()
  await page.getByLabel(strings.filter.kind).selectOption('audio')
  await tiles.filter({ hasText: 'harbour.jpg' }).waitFor({ state: 'detached' })
  await expect.poll(() => tiles.count()).toBe(1)
  await page.locator('.listing-head', { hasText: matches(1) }).waitFor()
  await page.getByRole('combobox', { name: strings.filter.time, exact: true }).selectOption('week')
  await tiles.filter({ hasText: 'tone.wav' }).waitFor()
  await page.getByLabel(strings.filter.kind).selectOption('video')
  await page.getByRole('heading', { name: strings.filter.none }).waitFor()
  await page.getByRole('status').getByText(matches(0)).waitFor()
  await guest.button(strings.filter.clear).click()
  await tiles.nth(2).waitFor()
})

test('G33 a list by name or by the time of cameras shows the number of all files', async () => {
  await using guest = await visit(browser, server, { hash: '#order=name' })
  await guest.signIn(server.token)
  const count = guest.page.locator('.listing-head', { hasText: strings.files(3) })
  await count.waitFor()
  await guest.page.getByLabel(strings.timeline.orderBy).selectOption('taken')
  await expect.poll(() => new URL(guest.page.url()).hash).toContain('taken')
  await count.waitFor()
})

test('K11 files are found as their names are typed', async () => {
  await using guest = await visit(browser, server, { hash: '' })
  await guest.signIn(server.token)
  const { page } = guest
  const tiles = page.locator('.timeline .tile')
  await tiles.nth(2).waitFor()
  await page.getByLabel(strings.filter.search).pressSequentially('WAV ton')
  await tiles.filter({ hasText: 'notes.txt' }).waitFor({ state: 'detached' })
  await expect.poll(() => tiles.count()).toBe(1)
  await tiles.filter({ hasText: 'tone.wav' }).waitFor()
  await page.getByLabel(strings.filter.search).fill('nothing')
  await page.getByRole('heading', { name: strings.filter.none }).waitFor()
  await page.getByLabel(strings.filter.search).fill('')
  await tiles.nth(2).waitFor()
})

test('G33 the search field stays while the files of another search are loaded', async () => {
  await using guest = await visit(browser, server, { hash: '' })
  await guest.signIn(server.token)
  const { page } = guest
  const tiles = page.locator('.timeline .tile')
  const field = page.getByLabel(strings.filter.search)
  await tiles.nth(2).waitFor()
  await field.fill('nothing')
  await page.getByRole('heading', { name: strings.filter.none }).waitFor()
  const { promise: released, resolve: release } = Promise.withResolvers<void>()
  await page.route(/\/api\/items/, async (route) => {
    await released
    await route.continue()
  })
  await Promise.all([page.waitForRequest(/\/api\/items/), field.fill('')])
  await page.getByRole('status').getByText(strings.listing.loading).waitFor()
  await page.keyboard.type('tone')
  await expect.poll(() => field.inputValue()).toBe('tone')
  await expect.poll(() => page.getByRole('heading', { name: strings.listing.empty }).count()).toBe(0)
  release()
  await tiles.filter({ hasText: 'tone.wav' }).waitFor()
  await tiles.filter({ hasText: 'notes.txt' }).waitFor({ state: 'detached' })
})

test('the language is that of the browser, changes without a reload, and stays', async () => {
  await using guest = await visit(browser, server, { hash: '', options: { locale: 'de-DE' } })
  const { page } = guest
  await page.getByLabel(de.settings.language).selectOption('es')
  await page.getByRole('button', { name: es.signIn.submit }).waitFor()
  await page.getByLabel(es.settings.theme).selectOption('dark')
  await expect.poll(() => page.evaluate('document.documentElement.dataset.theme')).toBe('dark')
  await page.getByLabel(es.settings.language).selectOption('de')
  await page.getByLabel(de.signIn.token, { exact: true }).fill(server.token)
  await guest.button(de.signIn.submit).click()
  await page.getByText('3 Dateien').waitFor()
  await expect.poll(() => page.evaluate('document.documentElement.lang')).toBe('de')
  await guest.button(de.settings.label).click()
  await page.getByLabel(de.settings.language).selectOption('es')
  await page.getByText('3 archivos').waitFor()
  await guest.button(es.header.signOut).waitFor()
  await page.reload()
  await page.getByText('3 archivos').waitFor()
})

test('the theme follows the system until one is chosen', async () => {
  await using guest = await visit(browser, server, { hash: '', options: { colorScheme: 'dark' } })
  await guest.signIn(server.token)
  const { page } = guest
  const ground = () => page.evaluate('getComputedStyle(document.documentElement).backgroundColor')
  const dark = await ground()
  await page.emulateMedia({ colorScheme: 'light' })
  await expect.poll(ground).not.toBe(dark)
  await guest.button(strings.settings.label).click()
  await page.getByLabel(strings.settings.theme).selectOption('dark')
  await expect.poll(() => ground()).toBe(dark)
  await page.reload()
  await guest.button(strings.header.signOut).waitFor()
  await expect.poll(() => ground()).toBe(dark)
})

test.each([
  ['de-DE', de, detailsInGerman],
  ['es-ES', es, detailsInSpanish],
])('G46, G48 names in links and the focal point of a picture, in %s', async (locale, texts, details) => {
  const name = 'pier.jpg'
  const { id } = await upload(server, new Uint8Array(await picture(4).jpeg().toBuffer()), { name })
  await using guest = await visit(browser, server, {
    hash: `#item=${id}`,
    options: { locale, hasTouch: true },
  })
  const { page } = guest
  await page.getByLabel(texts.signIn.token, { exact: true }).fill(server.token)
  await guest.button(texts.signIn.submit).click()
  await guest.button(texts.viewer.details).click()
  await page.getByRole('checkbox', { name: texts.link.names, exact: true }).tap()
  const link = page.getByLabel(details.link, { exact: true })
  await expect.poll(() => link.inputValue()).toMatch(/\/pier\.jpg$/)
  await guest.button(details.edit).click()
  await page.getByText(details.focus.none, { exact: true }).waitFor()
  const target = page.locator('.focus-target')
  await page.evaluate(`document.querySelector('.focus-target img').decode()`)
  await target.click()
  await page.getByText(details.focus.at(50, 50), { exact: true }).waitFor()
  await target.press('ArrowLeft')
  await page.getByText(details.focus.at(49, 50), { exact: true }).waitFor()
  await expectAccessible(guest, `focal point, ${locale}`)
  await guest.button(details.save).click()
  await page.getByText(details.saved, { exact: true }).first().waitFor()
})
