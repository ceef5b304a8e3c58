import jsqr from 'jsqr'
import type { Browser, BrowserContextOptions, Page } from 'playwright-core'
import sharp from 'sharp'
import { beforeAll, expect, test } from 'vitest'
import { formatSize } from '../../packages/gallery/src/format.ts'
import { loadTexts, strings } from '../../packages/gallery/src/strings.ts'
import { sharedBrowser } from '../harness/chromium.ts'
import { hollowPng } from '../harness/pictures.ts'
import type { SharedServer } from '../harness/server.ts'
import { sharedServer } from '../harness/shared-server.ts'
import { makeToken } from '../harness/token.ts'
import { uniqueName } from '../harness/unique-name.ts'
import { until } from '../harness/until.ts'
import { readCreatedToken, readItems } from '../harness/wire.ts'
import { expectAccessible } from './accessibility.ts'
import { visit } from './visit.ts'

let browser: Browser
let server: SharedServer
beforeAll(async () => {
  server = await sharedServer()
  browser = await sharedBrowser()
})

await loadTexts('labels', 'links', 'tokens')
const { labels, links, uploads } = strings

/** A link of a new bucket with these limits, opened. */
async function opened(limits: object, fields: object = {}, options?: BrowserContextOptions) {
  const bucket = uniqueName('asked')
  const owner = await makeToken(server, '--bucket', bucket, '--scope', 'tokens:manage,media:write,media:read')
  const headers = { authorization: owner.authorization }
  const response = await server.request('/api/tokens', {
    method: 'POST',
    headers: { ...headers, 'content-type': 'application/json' },
    body: JSON.stringify({ name: 'Photos of <b>Saturday</b>', scopes: ['media:write'], limits, ...fields }),
  })
  const created = readCreatedToken(await response.json())
  const guest = await visit(browser, server, {
    hash: `upload#${created.token}`,
    ...(options && { options }),
  })
  const items = async () => (await readItems(await server.request('/api/items', { headers }))).data
  const revoke = () => server.request(`/api/tokens/${created.id}`, { method: 'DELETE', headers })
  /** Chooses files and sends them. */
  const send = async (button: string, files: Parameters<typeof guest.choose>[1]) => {
    await guest.choose(button, files)
    await guest.button(links.send(Array.isArray(files) ? files.length : 1)).click()
  }
  return { guest, page: guest.page, bucket, items, revoke, secret: created.token, send }
}

const picture = (name: string, side: number) => ({
  name,
  mimeType: 'image/png',
  buffer: hollowPng(side, side),
})

const phone = { viewport: { width: 375, height: 812 }, hasTouch: true, isMobile: true }

test('G36 a person on a phone sends three photos, and is thanked', async () => {
  const { guest, page, send, items, bucket, secret } = await opened(
    { max_items: 3, types: ['image/*'], item_days: 9 },
    { note: 'For the album.\nThank you!' },
    phone,
  )
  await using _ = guest
  await page.getByRole('heading', { name: 'Photos of <b>Saturday</b>' }).waitFor()
  await page.getByText('For the album.').waitFor()
  for (const text of [links.onlyKinds('pictures'), links.upTo(3), links.expireAfter(9)])
    await page.getByText(text, { exact: true }).waitFor()
  await expect.poll(() => guest.button(links.takePhoto).isVisible()).toBe(true)
  await expect.poll(() => page.url()).toBe(`${server.url}/upload`)
  expect(await page.content()).not.toContain(secret)
  await expectAccessible(guest, 'an upload link')
  await page.setViewportSize(phone.viewport)

  await send(links.choosePhotos, [picture('a.png', 3), picture('b.png', 4), picture('c.png', 5)])
  await page.getByRole('heading', { name: links.thanks(3) }).waitFor()
  await page.getByText(links.complete).waitFor()
  await page.getByText(links.canClose).waitFor()
  expect((await items()).map(({ filename }) => filename)).toEqual(['a.png', 'b.png', 'c.png'])
  await expectAccessible(guest, 'an upload link that is complete')
  // Nothing of the bucket.
  expect(await page.content()).not.toContain(bucket)
  expect(guest.requests.filter((url) => /\/api\/(?:items|bucket|media\?)/.test(url))).toEqual([])
})

test('G36 a link with a slash at the end of its path works', async () => {
  const { guest, page, secret } = await opened({ max_items: 1 })
  await using _ = guest
  await page.evaluate('sessionStorage.clear()')
  await page.goto(`${server.url}/upload/#${secret}`)
  await guest.button(links.chooseFiles).waitFor()
  await expect.poll(() => page.url()).toBe(`${server.url}/upload`)
})

test('G36 chosen files are shown with their sizes and pictures, can be removed, and are sent by a button', async () => {
  const { guest, page, items } = await opened({ max_file_size: 20_000, item_days: 9 }, {}, phone)
  await using _ = guest
  const photo = await sharp({ create: { width: 300, height: 200, channels: 3, background: '#2a6fae' } })
    .jpeg()
    .toBuffer()
  await guest.choose(links.chooseFiles, [
    { name: 'photo.jpg', mimeType: 'image/jpeg', buffer: photo },
    { name: 'notes.txt', mimeType: 'text/plain', buffer: Buffer.from('notes') },
    { name: 'broken.png', mimeType: 'image/png', buffer: Buffer.from('no picture') },
  ])
  const list = page.getByRole('region', { name: links.chosen })
  await list
    .getByRole('status')
    .getByText(links.chosenCount(3, formatSize(photo.length + 15)))
    .waitFor()
  const rows = list.getByRole('listitem')
  await expect
    .poll(() => rows.allInnerTexts())
    .toEqual([`photo.jpg\n${formatSize(photo.length)}`, 'notes.txt\n5 bytes', 'broken.png\n10 bytes'])
  // The colour in the middle of the thumbnail, of a picture only.
  const colour = `(() => {
    const canvas = document.querySelector('.chosen-picture canvas:not([hidden])')
    return canvas && [...canvas.getContext('2d').getImageData(canvas.width / 2, 40, 1, 1).data].join()
  })()`
  await expect.poll(() => page.evaluate(colour)).toMatch(/^4\d,11\d,17\d,255$/)
  await expect.poll(() => page.locator('.chosen-picture canvas:not([hidden])').count()).toBe(1)
  await expectAccessible(guest, 'chosen files')
  await page.setViewportSize(phone.viewport)
  // More files are added; each can be removed by keyboard, and the next one has the focus.
  await guest.choose(links.chooseFiles, [
    { name: 'large.txt', mimeType: 'text/plain', buffer: Buffer.alloc(20_001) },
  ])
  await rows.nth(3).getByText(links.tooLarge('20 kB')).waitFor()
  await guest.button(links.remove('broken.png')).focus()
  await page.keyboard.press('Enter')
  await expect.poll(() => page.evaluate('document.activeElement.ariaLabel')).toBe(links.remove('large.txt'))
  await page.keyboard.press('Enter')
  await expect.poll(() => rows.count()).toBe(2)
  expect(await items()).toEqual([])
  await guest.button(links.send(2)).press('Enter')
  await page.getByRole('heading', { name: links.thanks(2) }).waitFor()
  await expect.poll(() => list.count()).toBe(0)
  expect((await items()).map(({ filename }) => filename)).toEqual(['photo.jpg', 'notes.txt'])
})

test('G36 what the link does not accept fails with the reason, and the rest arrives', async () => {
  const { guest, page, send, items } = await opened({ max_items: 2, types: ['image/*'] })
  await using _ = guest
  await send(links.choosePhotos, [
    picture('a.png', 3),
    { name: 'b.png', mimeType: 'image/png', buffer: Buffer.from('no picture') },
  ])
  await page.getByText(links.wrongType('pictures')).waitFor()
  await page.getByText(links.left(1, 2)).waitFor()
  // The bytes do not change.
  await expect.poll(() => guest.button(links.retry('b.png')).count()).toBe(0)
  await guest.button(links.remove('b.png')).click()
  await send(links.choosePhotos, [picture('c.png', 5), picture('d.png', 6)])
  await page.getByText(links.noneLeft).waitFor()
  await page.getByText(links.complete).waitFor()
  expect((await items()).length).toBe(2)
})

test('G36 files that the link cannot accept are not sent and offer no retry, and a reload keeps what arrived', async () => {
  const { guest, page, send, items } = await opened({
    max_items: 2,
    max_file_size: 20_000,
    types: ['image/*'],
  })
  await using _ = guest
  const sent: string[] = []
  page.on('request', (request) => void (request.method() === 'POST' && sent.push(request.url())))
  await send(links.choosePhotos, [
    { name: 'a.pdf', mimeType: 'application/pdf', buffer: Buffer.from('%PDF-1.4') },
    { name: 'b.png', mimeType: 'image/png', buffer: Buffer.alloc(20_001) },
    picture('c.png', 3),
    picture('d.png', 4),
    picture('e.png', 5),
  ])
  await page.getByRole('heading', { name: `${links.arrived(2)} · ${uploads.failed(3)}` }).waitFor()
  for (const text of [links.wrongType('pictures'), links.tooLarge('20 kB'), links.noneLeft])
    await page.getByText(text).waitFor()
  expect((await items()).map(({ filename }) => filename)).toEqual(['c.png', 'd.png'])
  expect(sent).toHaveLength(1)
  await expect.poll(() => guest.button(links.retry('b.png')).count()).toBe(0)
  await page.reload()
  await page.getByRole('heading', { name: links.arrived(2) }).waitFor()
  expect(sent).toHaveLength(1)
})

test('G36 an upload continues after a reload, without the token in the address, and thanks are in view below a long note', async () => {
  const { guest, page, send, items } = await opened(
    { max_bytes: 50_000_000, max_file_size: 20_000_000, item_days: 9 },
    { note: 'For the album of the family.\n'.repeat(40) },
    { ...phone, viewport: { width: 375, height: 400 } },
  )
  await using _ = guest
  let isHeld = true
  await page.route(/\/api\/uploads\/./, async (route) => {
    if (isHeld && route.request().method() === 'PATCH') return
    await route.fallback()
  })
  const buffer = Buffer.alloc(3_000_000, 'large')
  await send(links.chooseFiles, { name: 'large.txt', mimeType: 'text/plain', buffer })
  await page.getByText(links.continuesLater).waitFor()
  isHeld = false
  await page.reload()
  await page.getByRole('heading', { name: links.thanks(1) }).waitFor()
  const isInView = `(() => {
    const { top, bottom } = document.querySelector('.upload-progress h2').getBoundingClientRect()
    return top >= 0 && bottom <= innerHeight
  })()`
  await expect.poll(() => page.evaluate(isInView)).toBe(true)
  // It was about a file that has arrived.
  await page.getByText(uploads.continued(1)).waitFor({ state: 'detached' })
  expect(await items()).toMatchObject([{ filename: 'large.txt', size: 3_000_000 }])
})

test('G36 dropped files are sent', async () => {
  const { guest, page, items } = await opened({ max_items: 5 })
  await using _ = guest
  await guest.button(links.chooseFiles).waitFor()
  await page.evaluate(`(() => {
    const transfer = new DataTransfer()
    transfer.items.add(new File(['dropped'], 'dropped.txt', { type: 'text/plain' }))
    dispatchEvent(new DragEvent('drop', { dataTransfer: transfer, bubbles: true, cancelable: true }))
  })()`)
  await guest.button(links.send(1)).click()
  await page.getByRole('heading', { name: links.thanks(1) }).waitFor()
  expect(await items()).toMatchObject([{ filename: 'dropped.txt' }])
})

test('G36 a link that was revoked, or that is none, says so', async () => {
  const { guest, page, send, revoke } = await opened({ max_items: 5 })
  await using _ = guest
  await guest.button(links.chooseFiles).waitFor()
  await revoke()
  await send(links.chooseFiles, picture('a.png', 3))
  await page.getByRole('heading', { name: links.invalid }).waitFor()
  await expectAccessible(guest, 'an upload link that does not work')
  await page.evaluate('sessionStorage.clear()')
  await page.reload()
  await until('the message', () => page.getByRole('heading', { name: links.invalid }).isVisible())
})

/** The text of the QR code on the page. */
async function decodedCode(page: Page): Promise<string | undefined> {
  const shot = await page.getByRole('img', { name: links.code }).screenshot()
  const { data, info } = await sharp(shot).ensureAlpha().raw().toBuffer({ resolveWithObject: true })
  return jsqr.default(new Uint8ClampedArray(data), info.width, info.height)?.data
}

test('G37 the page of tokens creates an upload link with a QR code, shows what arrived, and revokes it', async () => {
  const bucket = uniqueName('asking')
  const scopes = ['tokens:manage', 'media:read', 'media:write']
  const own = await makeToken(server, '--bucket', bucket, '--scope', scopes.join(','))
  await server.request('/api/media', {
    method: 'POST',
    body: 'known',
    headers: { authorization: own.authorization, 'mediabucket-labels': 'album="41", album2="2"' },
  })
  await using guest = await visit(browser, server, { hash: '#tokens' })
  const { page } = guest
  await guest.signIn(own.token)
  await guest.button(strings.listing.ask).click()
  const dialog = page.getByRole('dialog')
  await dialog.getByLabel(links.title).fill('Party')
  await expect.poll(() => dialog.locator('input:visible, select:visible, textarea:visible').count()).toBe(3)
  await expectAccessible(guest, 'the dialog that asks for files, with few fields')
  await dialog.getByText(links.moreFields, { exact: true }).click()
  await dialog.getByLabel(links.note, { exact: true }).fill('Your best one')
  await dialog.getByLabel(links.howMany).fill('2')
  await dialog.getByLabel(links.maxTotal).selectOption('1 GB')
  await dialog.getByLabel(links.deleteAfter).fill('9')
  const key = (row: number) => dialog.getByLabel(labels.keyOf(row), { exact: true })
  const value = (row: number) => dialog.getByLabel(labels.valueOf(row), { exact: true })
  await key(1).fill('my album')
  await value(1).fill('42')
  // The fields that are refused are shown, and get the focus.
  await dialog.getByLabel(links.howMany).fill('0')
  await dialog.getByText(links.moreFields, { exact: true }).click()
  await dialog.getByRole('button', { name: links.create }).click()
  await expect.poll(() => page.evaluate('document.activeElement.name')).toBe('items')
  await dialog.getByLabel(links.howMany).fill('2')
  await dialog.getByText(links.moreFields, { exact: true }).click()
  await dialog.getByRole('button', { name: links.create }).click()
  await dialog.getByRole('alert').getByText(labels.badKey('my album')).waitFor()
  await expect.poll(() => page.evaluate('document.activeElement.getAttribute("aria-invalid")')).toBe('true')
  await key(1).fill('Album')
  await dialog.getByRole('button', { name: labels.add }).click()
  await page.keyboard.type('from = guests')
  await expectAccessible(guest, 'the dialog that asks for files')
  await dialog.getByRole('button', { name: links.create }).click()
  const field = dialog.getByLabel(links.created, { exact: true })
  await field.waitFor()
  const url = await field.inputValue()
  expect(url).toMatch(/\/upload#mbkt_/)
  await expect.poll(() => decodedCode(page)).toBe(url)
  await expectAccessible(guest, 'the dialog with the link')
  await dialog.getByRole('button', { name: strings.done }).click()

  const row = page.getByRole('listitem').filter({ hasText: 'Party' })
  await row.getByText(links.received(0, '')).waitFor()
  await row.getByText(links.badge).waitFor()
  const headers = { authorization: `Bearer ${url.split('#')[1]}` }
  expect(await (await server.request('/api/token', { headers })).json()).toMatchObject({
    limits: { max_items: 2, max_bytes: 1_000_000_000, item_days: 9, labels: { album: '42', from: 'guests' } },
  })
  await server.request('/api/media', { method: 'POST', body: hollowPng(3, 3), headers })
  await page.reload()
  await row.getByText(/1 file arrived/).waitFor()
  await row.getByText(links.left(1, 2)).waitFor()
  await expectAccessible(guest, 'the list with an upload link')
  await row.getByRole('button', { name: strings.tokens.revoke }).click()
  await dialog.getByRole('button', { name: strings.tokens.revoke }).click()
  await row.getByText(strings.tokens.revoked).waitFor()
  expect((await server.request('/api/token', { headers })).status).toBe(401)
})

test('G37 the list of files has the button Ask for files, also on phones and in an empty bucket', async () => {
  const bucket = uniqueName('asks')
  const scopes = 'media:read,media:write,tokens:manage'
  const own = await makeToken(server, '--bucket', bucket, '--scope', scopes)
  await using guest = await visit(browser, server, { hash: '', options: phone })
  const { page } = guest
  await guest.signIn(own.token)
  const dialog = page.getByRole('dialog')
  // By keyboard, in the empty bucket, once the page knows that it is empty.
  await page.getByText(strings.listing.empty, { exact: true }).waitFor()
  await guest.button(strings.listing.ask).press('Enter')
  await dialog.getByLabel(links.title).waitFor()
  await page.keyboard.press('Escape')
  await dialog.waitFor({ state: 'detached' })
  await expect.poll(() => page.evaluate('document.activeElement.textContent')).toBe(strings.listing.ask)
  await guest.choose(strings.listing.chooseFiles, picture('a.png', 3))
  await guest.files.first().waitFor()
  await guest.button(strings.listing.ask).tap()
  await dialog.getByLabel(links.title).fill('Wedding')
  await page.keyboard.press('Enter')
  const url = await dialog.getByLabel(links.created, { exact: true }).inputValue()
  const headers = { authorization: `Bearer ${url.split('#')[1]}` }
  const token: unknown = await (await server.request('/api/token', { headers })).json()
  expect(token).toMatchObject({
    ...{ name: 'Wedding', bucket, scopes: ['media:write'] },
    limits: { types: ['image/*'], max_file_size: 100_000_000, max_items: null },
  })
  await dialog.getByRole('button', { name: strings.done }).click()
  await expectAccessible(guest, 'the list with the button')
  // The list of tokens is not requested.
  expect(guest.requests.filter((url) => /\/api\/tokens(?:$|\?)/.test(url))).toHaveLength(1)
})

test('G37, A3 with a token that cannot create links, Ask for files says which scopes are missing', async () => {
  const bucket = uniqueName('cannot-ask')
  const writer = await makeToken(server, '--bucket', bucket)
  await using guest = await visit(browser, server, { hash: '' })
  const { page } = guest
  await guest.signIn(writer.token)
  await guest.button(strings.listing.ask).click()
  const dialog = page.getByRole('dialog', { name: strings.listing.ask })
  await dialog.getByText(strings.tokens.missing('tokens:manage', 1)).waitFor()
  const command = `npx mediabucket token create --bucket ${bucket} --scope media:read,media:write,media:delete,tokens:manage`
  await dialog.getByText(command, { exact: true }).waitFor()
  await expectAccessible(guest, 'the dialog with the missing scope')
  await dialog.getByRole('button', { name: strings.close }).click()
  await guest.button(strings.header.signOut).click()

  // A person who only reads is not asked to ask.
  const reader = await makeToken(server, '--bucket', bucket, '--scope', 'media:read')
  await guest.signIn(reader.token)
  await page.getByText(strings.listing.emptyReadOnlyHint).waitFor()
  await expect.poll(() => guest.button(strings.listing.ask).count()).toBe(0)
})
