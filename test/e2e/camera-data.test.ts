import type { Browser } from 'playwright-core'
import { beforeAll, expect, test } from 'vitest'
import { loadTexts, strings } from '../../packages/gallery/src/strings.ts'
import { sharedBrowser } from '../harness/chromium.ts'
import type { SharedServer } from '../harness/server.ts'
import { sharedServer } from '../harness/shared-server.ts'
import { makeToken } from '../harness/token.ts'
import { uniqueName } from '../harness/unique-name.ts'
import { until } from '../harness/until.ts'
import { upload } from '../harness/upload.ts'
import { expectAccessible, wcag } from './accessibility.ts'
import { picture } from './files.ts'
import { newGuest, uploadHeading } from './uploading.ts'
import { type Visit, visit } from './visit.ts'

await loadTexts('details')

let browser: Browser
let server: SharedServer
beforeAll(async () => {
  server = await sharedServer()
  browser = await sharedBrowser()
})

const camera = {
  IFD0: { Make: 'Harbour', Model: 'Harbour One' },
  IFD2: {
    LensModel: 'Pier 35mm',
    ExposureTime: '1/250',
    FNumber: '28/10',
    ISOSpeedRatings: '100',
    FocalLength: '35/1',
    DateTimeOriginal: '2026:05:01 12:30:00',
  },
}
const place = {
  GPSLatitudeRef: 'N',
  GPSLatitude: '53/1 32/1 24/1',
  GPSLongitudeRef: 'W',
  GPSLongitude: '9/1 58/1 12/1',
}

/** A signed-in visit of a new bucket with a picture that has a location, one that has none, and a text. */
async function visitBucket(options: Parameters<typeof visit>[2] = {}) {
  const { token, authorization } = await makeToken(server, '--bucket', uniqueName('camera'))
  const files = [
    [
      'pier.jpg',
      await picture(1, 640, 480)
        .withExif({ ...camera, IFD3: place })
        .jpeg()
        .toBuffer(),
    ],
    ['plain.webp', await picture(2).withExif(camera).webp().toBuffer()],
    ['notes.txt', Buffer.from('notes')],
  ] as const
  const items = new Map<string, { readonly id: string; readonly url: string }>()
  for (const [name, bytes] of files)
    items.set(name, await upload(server, new Uint8Array(bytes), { name, type: '', authorization }))
  const guest = await visit(browser, server, {
    ...options,
    options: { permissions: ['clipboard-read', 'clipboard-write'], ...options.options },
  })
  await guest.signIn(token)
  return { guest, items }
}

const open = async ({ page, files }: Visit, name: string) => {
  await files.getByText(name).click()
  const dialog = page.getByRole('dialog', { name: strings.viewer.label(name), exact: true })
  await dialog.waitFor()
  return dialog
}

const clipboard = async ({ page }: Visit) => `${await page.evaluate('navigator.clipboard.readText()')}`

test('G18 months with one picture share lines, on phones and desktops, and the arrow keys lead from line to line', async () => {
  const { token, authorization } = await makeToken(server, '--bucket', uniqueName('months'))
  const months = ['2026:05', '2026:04', '2026:03', '2026:02', '2026:01', '2025:12', '2025:11', '2025:10']
  for (const [index, month] of months.entries()) {
    const exif = { IFD2: { DateTimeOriginal: `${month}:01 12:30:00` } }
    const bytes = await picture(index, 300, 300).withExif(exif).jpeg().toBuffer()
    await upload(server, new Uint8Array(bytes), { name: `${index}.jpg`, type: '', authorization })
  }
  for (const [width, inLine] of [
    [375, 2],
    [1440, 5],
  ] as const) {
    await using guest = await visit(browser, server, {
      hash: '#kind=image&order=taken-desc',
      options: { viewport: { width, height: 900 } },
    })
    await guest.signIn(token)
    const { page, files } = guest
    await files.nth(7).waitFor()
    const boxes = async () => await Promise.all((await files.all()).map((tile) => tile.boundingBox()))
    const tops = async () => new Set((await boxes()).map((box) => box?.y))
    await expect
      .poll(async () => (await tops()).size, { message: `${width} pixels` })
      .toBe(Math.ceil(8 / inLine))
    await expect.poll(() => page.locator('.timeline h2').count()).toBe(8)
    const focused = () =>
      page.evaluate('document.activeElement.closest("li")?.querySelector("a").textContent')
    await page.locator('.timeline a[tabindex="0"]').focus()
    await page.keyboard.press('ArrowRight')
    await expect.poll(focused).toContain('1.jpg')
    await page.keyboard.press('ArrowDown')
    await expect.poll(focused).toContain(`${inLine + 1}.jpg`)
    await page.keyboard.press('ArrowUp')
    await expect.poll(focused).toContain('1.jpg')
    await expectAccessible(guest, 'small groups')
  }
})

test('G18, G27, G28 files are grouped by the day of the camera, the details show what the camera has written, and warn of a location; they and the question are accessible', async () => {
  const { guest } = await visitBucket()
  await using _ = guest
  await guest.page.getByLabel(strings.timeline.orderBy).selectOption('taken')
  const day = guest.page.getByRole('heading', { name: /May 1, 2026|1 May 2026/ })
  await day.waitFor()
  await expect.poll(() => new URL(guest.page.url()).hash).toBe('#order=taken')
  const dialog = await open(guest, 'pier.jpg')
  await dialog.getByRole('img', { name: 'pier.jpg', exact: true }).first().waitFor()
  await dialog.getByRole('button', { name: strings.viewer.details }).click()
  const details = dialog.getByRole('complementary')
  for (const text of ['Harbour One', 'Pier 35mm', '1/250 s, f/2.8, ISO 100', '35 mm', '53.5400°, -9.9700°'])
    await details.getByText(text, { exact: true }).or(details.getByText(text)).first().waitFor()
  await details.getByText(strings.details.camera.locationHint).waitFor()
  await details.getByText(/May 1, 2026|1 May 2026/).waitFor()
  const rules = [...wcag, 'best-practice']
  await expectAccessible(guest, 'details', rules)
  await dialog.getByRole('button', { name: strings.viewer.copy, exact: true }).click()
  const question = guest.page.getByRole('dialog', { name: strings.details.location.title })
  await question.waitFor()
  await expectAccessible(guest, 'question', rules)
  await question.getByRole('button', { name: strings.cancel }).click()
  await question.waitFor({ state: 'detached' })
  await guest.page.keyboard.press('ArrowRight')
  const next = guest.page.getByRole('dialog', { name: strings.viewer.label('plain.webp'), exact: true })
  await next.getByRole('complementary').getByText('Pier 35mm').waitFor()
  await expect.poll(() => next.getByText(strings.details.camera.locationHint).count()).toBe(0)
})

test('G28 the link of a picture with a location is copied after a question, others and a ZIP archive at once', async () => {
  const { guest, items } = await visitBucket()
  await using _ = guest
  const { page } = guest
  const dialog = await open(guest, 'pier.jpg')
  const copy = dialog.getByRole('button', { name: strings.viewer.copy, exact: true })
  const question = page.getByRole('dialog', { name: strings.details.location.title })

  // Earlier tests of the same browser may have left something in it.
  await page.evaluate("navigator.clipboard.writeText('before')")
  await copy.click()
  await question.getByText(strings.details.location.warning('pier.jpg')).waitFor()
  await question.getByRole('button', { name: strings.cancel }).click()
  await question.waitFor({ state: 'detached' })
  expect(await clipboard(guest)).toBe('before')

  await copy.click()
  await question.getByRole('button', { name: strings.details.location.share }).click()
  await until('the link is copied', async () => (await clipboard(guest)) === items.get('pier.jpg')?.url)
  // It was confirmed, so it is not asked again.
  await page.evaluate("navigator.clipboard.writeText('-')")
  await copy.click()
  await until('the link is copied again', async () => (await clipboard(guest)) === items.get('pier.jpg')?.url)

  await page.keyboard.press('ArrowRight')
  const next = page.getByRole('dialog', { name: strings.viewer.label('plain.webp'), exact: true })
  await next.getByRole('button', { name: strings.viewer.copy, exact: true }).click()
  await until(
    'a link is copied at once',
    async () => (await clipboard(guest)) === items.get('plain.webp')?.url,
  )
  await page.keyboard.press('Escape')
  await next.waitFor({ state: 'detached' })

  // A ZIP archive is created without a question.
  for (const name of ['pier.jpg', 'notes.txt'])
    await page.getByLabel(strings.selection.select(name), { exact: true }).click()
  const download = page.waitForEvent('download')
  await guest.button(strings.selected.zip).click()
  expect((await download).suggestedFilename()).toMatch(/\.zip$/)
  await expect.poll(() => page.getByRole('dialog').count()).toBe(0)
})

test('G28 the links of uploaded pictures that were not shown are copied after a question', async () => {
  await using guest = await newGuest(browser, server, {
    options: { permissions: ['clipboard-read', 'clipboard-write'] },
  })
  const notes = Array.from({ length: 10 }, (_, at) => ({
    source: new Blob([`${at}`]),
    filename: `${at}.txt`,
  }))
  await guest.client.uploadAll(notes)
  const buffer = await picture(3).withExif({ IFD3: place }).jpeg().toBuffer()
  // The first page is full.
  await guest.choose(strings.header.upload, [{ name: 'sea.jpg', mimeType: 'image/jpeg', buffer }])
  await uploadHeading(guest, strings.uploads.finished(1))
  await guest.button(strings.uploads.copy).click()
  const question = guest.page.getByRole('dialog', { name: strings.details.location.title })
  await question.getByText(strings.details.location.warning('sea.jpg')).waitFor()
  await question.getByRole('button', { name: strings.details.location.share }).click()
  const [url] = (await guest.client.listPage(2)).data
  await until('the link is copied', async () => (await clipboard(guest)) === url)
})
