import { readFile } from 'node:fs/promises'
import type { Browser, Locator } from 'playwright-core'
import { beforeAll, describe, expect, test } from 'vitest'
import { strings } from '../../packages/gallery/src/strings.ts'
import { sharedBrowser } from '../harness/chromium.ts'
import { runHere } from '../harness/commands.ts'
import type { SharedServer } from '../harness/server.ts'
import { sharedServer } from '../harness/shared-server.ts'
import { needTools } from '../harness/tools.ts'
import { until } from '../harness/until.ts'
import { upload } from '../harness/upload.ts'
import { clip, isDrawn, pdf, picture } from './files.ts'
import { type Visit, visit } from './visit.ts'

let browser: Browser
let server: SharedServer
beforeAll(async () => {
  server = await sharedServer()
  browser = await sharedBrowser()
  const files: readonly (readonly [string, Uint8Array, string])[] = [
    ['harbour.jpg', await picture(1, 2400, 1600).jpeg().toBuffer(), 'image/jpeg'],
    ['clip.webm', await clip(), 'video/webm'],
    ['report.pdf', pdf(), 'application/pdf'],
    ['notes.txt', Buffer.from('Notes of the harbour.\n'), 'text/plain'],
  ]
  for (const [name, bytes, type] of files) await upload(server, new Uint8Array(bytes), { name, type })
  await runHere(server.data, 'bucket set', server.bucket, '--private', 'on')
})

const clipboard = { permissions: ['clipboard-read', 'clipboard-write'] }
const dialogOf = ({ page }: Visit, name: string) =>
  page.getByRole('dialog', { name: strings.viewer.label(name), exact: true })
const copied = async ({ page }: Visit) => `${await page.evaluate('navigator.clipboard.readText()')}`
const signature = /signature=|mbkt_/

/** Opens a file of the list, and asserts after `use` that no secret is in the address bar or the history. */
async function withOpened(guest: Visit, name: string, use: (dialog: Locator) => Promise<void>) {
  await guest.page.locator('.tile', { hasText: name }).getByRole('link').click()
  const dialog = dialogOf(guest, name)
  await dialog.waitFor()
  await use(dialog)
  expect(guest.page.url()).not.toMatch(signature)
  await guest.page.keyboard.press('Escape')
  await dialog.waitFor({ state: 'detached' })
}

describe.each([
  ['a list', '#view=list'],
  ['a grid', ''],
])('a private bucket as %s', (_, hash) => {
  test('G23 shows pictures, excerpts, video with seeking, texts and downloads', async () => {
    await using guest = await visit(browser, server, { hash })
    await guest.signIn(server.token)
    const { page } = guest
    const tile = (name: string) => page.locator('.tile', { hasText: name })
    // It is rendered at low priority, which takes long beside other tests.
    await tile('harbour.jpg').locator('img').waitFor({ timeout: 150_000 })
    await until('the thumbnail', async () => isDrawn(tile('harbour.jpg').locator('img')))
    await until('the excerpt', async () =>
      (await tile('notes.txt').locator('.tile-excerpt').textContent())?.startsWith('Notes of the harbour.'),
    )
    await withOpened(guest, 'harbour.jpg', async (dialog) => {
      await until('the picture', async () => isDrawn(dialog.getByRole('img', { name: 'harbour.jpg' })))
    })
    await withOpened(guest, 'clip.webm', async (dialog) => {
      const player = dialog.locator('video')
      await until('its length', () => player.evaluate(({ duration }) => Math.round(duration) === 6))
      await player.evaluate((player) => {
        return new Promise((sought) => {
          player.onseeked = () => sought(null)
          player.currentTime = 5
        })
      })
    })
    await withOpened(guest, 'notes.txt', async (dialog) => {
      await dialog.getByText('Notes of the harbour.').filter({ visible: true }).waitFor()
      const [download] = await Promise.all([
        page.waitForEvent('download'),
        dialog.getByRole('link', { name: strings.viewer.download }).first().click(),
      ])
      expect(download.suggestedFilename()).toBe('notes.txt')
      expect(await readFile(await download.path(), 'utf8')).toBe('Notes of the harbour.\n')
    })
    expect(guest.requests.filter((url) => !url.startsWith(server.url) && !url.startsWith('blob:'))).toEqual(
      [],
    )
    expect(
      await page.evaluate('performance.getEntriesByType("navigation").map(({ name }) => name).join()'),
    ).not.toMatch(signature)
  })
})

test('G23, G31 a PDF of a private bucket opens in a new tab, whose URL has no signature', async () => {
  await using guest = await visit(browser, server)
  await guest.signIn(server.token)
  await withOpened(guest, 'report.pdf', async (dialog) => {
    const page = dialog.getByAltText(strings.slides.firstPage)
    needTools('pdftoppm')
    await until('the first page', () => isDrawn(page, 200))
    const opened = guest.context.waitForEvent('page')
    await dialog.getByRole('link', { name: strings.slides.openPdf }).click()
    const tab = await opened
    expect(tab.url()).not.toMatch(signature)
    await tab.close()
  })
})

test('G23 files of a private bucket are downloaded as one archive', async () => {
  await using guest = await visit(browser, server)
  await guest.signIn(server.token)
  await guest.files.getByText('notes.txt').waitFor()
  await guest.page.keyboard.press('Control+A')
  const [download] = await Promise.all([
    guest.page.waitForEvent('download'),
    guest.button(strings.selected.zip).click(),
  ])
  expect((await readFile(await download.path())).toString('latin1')).toContain('Notes of the harbour.')
})

test('G24 links that expire are offered first, in the viewer and for a selection; plain ones say what they need', async () => {
  await using guest = await visit(browser, server, { options: clipboard })
  await guest.signIn(server.token)
  const { page } = guest
  await withOpened(guest, 'notes.txt', async (dialog) => {
    const copy = dialog.getByRole('button', { name: strings.viewer.copy, exact: true })
    await copy.click()
    const menu = dialog.locator('.menu:popover-open')
    await menu.waitFor()
    expect((await menu.getByRole('button').allTextContents()).at(-1)).toBe(strings.link.withoutExpiry)
    await menu.getByRole('button', { name: strings.link.withoutExpiry }).click()
    await page.getByText(strings.link.needsToken).first().waitFor()
    const plain = await copied(guest)
    expect(plain).toMatch(/\/media\/\w+\.txt$/)
    expect((await fetch(plain)).status).toBe(404)
    await copy.click()
    const choice = strings.link.validFor(strings.link.lifetime(24))
    await dialog.getByRole('button', { name: choice, exact: true }).click()
    await until('the link', async () => signature.test(await copied(guest)))
    const link = await copied(guest)
    expect(await (await fetch(link)).text()).toBe('Notes of the harbour.\n')
    const left = Number(new URL(link).searchParams.get('expires')) - Date.now() / 1000
    expect(Math.round(left / 3_600)).toBe(24)
  })
  await page.keyboard.press('Control+A')
  await guest.button(strings.selected.copy).click()
  await guest.button(strings.link.validFor(strings.link.lifetime(1))).click()
  await until('the links', async () => (await copied(guest)).split('\n').length === 4)
  for (const link of (await copied(guest)).split('\n')) expect((await fetch(link)).status).toBe(200)
})

test('G24 a public bucket copies a link at once', async () => {
  const open = await sharedServer()
  await upload(open, 'text', { name: 'open.txt' })
  await using guest = await visit(browser, open, { options: clipboard })
  await guest.signIn(open.token)
  await guest.files.getByRole('link', { name: 'open.txt' }).click()
  await guest.button(strings.viewer.copy).click()
  await guest.page.getByText(strings.link.copied(1)).first().waitFor()
  await expect.poll(() => copied(guest)).toMatch(/\/media\/\w+\.txt$/)
})
