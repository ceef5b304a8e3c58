import { randomBytes, randomUUID } from 'node:crypto'
import type { Browser } from 'playwright-core'
import { Type } from 'typebox'
import { Value } from 'typebox/value'
import { beforeAll, describe, expect, test } from 'vitest'
import { loadTexts, strings } from '../../packages/gallery/src/strings.ts'
import { sharedBrowser } from '../harness/chromium.ts'
import { startGateway } from '../harness/gateway.ts'
import { type SharedServer, startServer } from '../harness/server.ts'
import { sharedServer } from '../harness/shared-server.ts'
import { makeToken } from '../harness/token.ts'
import { until } from '../harness/until.ts'
import { upload } from '../harness/upload.ts'
import { expectAccessible } from './accessibility.ts'
import { drop } from './drop.ts'
import { clip, hostileName, pdf, picture, tone, writeFiles } from './files.ts'
import { type Visit, visit } from './visit.ts'

await loadTexts('details')

let browser: Browser
let server: SharedServer
beforeAll(async () => {
  server = await sharedServer()
  browser = await sharedBrowser()
  const files: readonly (readonly [string, Uint8Array, string])[] = [
    ['harbour.jpg', await picture(1, 640, 480).jpeg().toBuffer(), 'image/jpeg'],
    ['upright.png', await picture(2, 300, 400).png().toBuffer(), 'image/png'],
    [hostileName, await picture(3).png().toBuffer(), 'image/png'],
    ['clip.webm', await clip(), 'video/webm'],
    ['tone.wav', tone(), 'audio/wav'],
    ['report.pdf', pdf(), 'application/pdf'],
    ['notes.txt', Buffer.from('Notes of the harbour.\n'.repeat(200)), 'text/plain'],
    [`${'a very long name '.repeat(12)}.txt`, Buffer.from('x'), 'text/plain'],
  ]
  for (const [name, bytes, type] of files) await upload(server, new Uint8Array(bytes), { name, type })
})

const Focused = Type.Object({ label: Type.String(), ring: Type.Boolean() })

async function signedIn(at: SharedServer = server): Promise<Visit> {
  const guest = await visit(browser, at)
  await guest.signIn(at.token)
  return guest
}

describe('WCAG 2.2 AA', () => {
  test('sign-in form, and an invalid token', async () => {
    await using guest = await visit(browser, server)
    await guest.button(strings.signIn.submit).waitFor()
    await expectAccessible(guest, 'sign-in')
    await guest.page.getByLabel(strings.signIn.token, { exact: true }).fill('mbkt_wrong')
    await guest.button(strings.signIn.submit).click()
    await guest.page.getByText(strings.signIn.refused).waitFor()
    await expectAccessible(guest, 'refused')
  })

  test('files as a grid and as a list, a selection, the deletion dialog, and a file that does not exist', async () => {
    await using guest = await signedIn()
    const { page } = guest
    await guest.files.getByText('harbour.jpg').waitFor()
    await until('names', async () => (await guest.files.getByText(strings.viewer.loading).count()) === 0)
    await expectAccessible(guest, 'grid')
    for (const name of ['harbour.jpg', 'tone.wav'])
      await page.getByLabel(strings.selection.select(name), { exact: true }).click()
    await expectAccessible(guest, 'selecting')
    await guest.button(strings.selected.delete).click()
    await page.getByRole('dialog').waitFor()
    await expectAccessible(guest, 'deleting')
    await page.keyboard.press('Escape')
    await page.goto(`${server.url}/#order=oldest&item=zzzz`)
    await page.getByRole('dialog').getByText(strings.viewer.deleted).waitFor()
    await expectAccessible(guest, 'gone')
    // Without the selection.
    await page.goto('about:blank')
    await page.goto(`${server.url}/#`)
    await guest.files.nth(2).getByRole('checkbox').check()
    await guest.button(strings.view.list).click()
    await page.locator('.as-list').waitFor()
    await guest.button(strings.settings.label).click()
    await expectAccessible(guest, 'list, with settings')
  })

  test('each kind of file in the viewer, with its details', async () => {
    await using guest = await signedIn()
    const { page } = guest
    for (const name of ['harbour.jpg', 'clip.webm', 'tone.wav', 'report.pdf', 'notes.txt']) {
      await guest.files.getByText(name).click()
      const dialog = page.getByRole('dialog', { name: strings.viewer.label(name) })
      await dialog.waitFor()
      await guest.button(strings.viewer.details).waitFor()
      await until('loaded', async () => (await dialog.getByText(strings.viewer.loading).count()) === 0)
      await expectAccessible(guest, name)
      await guest.button(strings.viewer.details).click()
      await page.getByRole('complementary', { name: strings.details.title }).waitFor()
      await expectAccessible(guest, `${name} with details`)
      await guest.button(strings.viewer.details).click()
      await page.keyboard.press('Escape')
      await dialog.waitFor({ state: 'detached' })
    }
  })

  test('an empty bucket, a read-only token, and files dragged over the page', async () => {
    const empty = await sharedServer()
    await using guest = await signedIn(empty)
    await guest.page.getByText(strings.listing.empty).waitFor()
    await expectAccessible(guest, 'empty')
    await using files = await writeFiles(new Map([['a.txt', Buffer.from('a')]]))
    await drop(guest.page, files.paths, async () => {
      await guest.page.getByText(strings.adding.drop, { exact: true }).waitFor()
      await expectAccessible(guest, 'dropping')
    })
    await guest.files.getByText('a.txt').waitFor()
    const { token } = await makeToken(empty, '--bucket', randomUUID(), '--scope', 'media:read')
    await using reader = await visit(browser, empty)
    await reader.signIn(token)
    await reader.page.getByText(strings.listing.emptyReadOnlyHint).waitFor()
    await expectAccessible(reader, 'empty, to be read')
  })

  test('uploads in progress, paused, refused and done; a lost connection', async () => {
    await using own = await startServer({ MEDIABUCKET_MAX_FILE_SIZE: '5MB' })
    await using way = await startGateway(own.url)
    await using guest = await visit(browser, own, { url: way.url })
    await guest.signIn(own.token)
    const file = (name: string, size: number) => ({ name, mimeType: 'video/mp4', buffer: randomBytes(size) })
    way.holdAfter(1_000_000)
    await guest.choose(strings.header.upload, [file('too-large.mp4', 6_000_000), file('film.mp4', 4_000_000)])
    await guest.button(strings.uploads.retry('too-large.mp4')).waitFor()
    await until('a part of the film', () => way.passed() >= 1_000_000)
    await expectAccessible(guest, 'uploading')
    await guest.button(strings.uploads.pause('film.mp4')).click()
    await guest.button(strings.uploads.resume('film.mp4')).waitFor()
    await expectAccessible(guest, 'paused')
    way.open()
    await guest.button(strings.uploads.resume('film.mp4')).click()
    await guest.files.getByText('film.mp4').waitFor()
    await expectAccessible(guest, 'uploaded')
    await own.stop()
    await guest.button(strings.uploads.retry('too-large.mp4')).click()
    await guest.page.getByText(strings.connection.lost).first().waitFor()
    await expectAccessible(guest, 'gone')
  })
})

test('nothing is animated with prefers-reduced-motion', async () => {
  await using guest = await signedIn()
  await guest.files.getByText('harbour.jpg').click()
  await guest.page.getByRole('dialog').getByRole('img', { name: 'harbour.jpg' }).first().waitFor()
  const moving = `[...document.querySelectorAll('*')].flatMap((element) => {
    const { transitionDuration, animationName, animationDuration } = getComputedStyle(element)
    const lasts = (times) => times.split(', ').some((time) => Number.parseFloat(time) > 0)
    const moves = lasts(transitionDuration) || (animationName !== 'none' && lasts(animationDuration))
    return moves ? [element.getAttribute('class') ?? element.tagName] : []
  })`
  await expect.poll(() => guest.page.evaluate(moving)).toEqual([])
  await guest.page.emulateMedia({ reducedMotion: 'no-preference' })
  await expect.poll(() => guest.page.evaluate(moving)).not.toEqual([])
})

test('the keyboard reaches everything in order, with a visible focus', async () => {
  await using guest = await signedIn()
  const { page } = guest
  await guest.files.getByText('harbour.jpg').waitFor()
  await page.evaluate('document.activeElement.blur()')
  const focused = `(() => {
    const { activeElement: at } = document
    const label = at.getAttribute('aria-label') ?? at.labels?.[0]?.textContent ?? at.textContent
    const { outlineStyle, boxShadow } = getComputedStyle(at.closest('.search') ?? at)
    return { label: label.trim(), ring: outlineStyle !== 'none' || boxShadow !== 'none' }
  })()`
  const reached: string[] = []
  for (let step = 0; step < 60 && reached.at(-1) !== strings.selection.select('harbour.jpg'); step++) {
    await page.keyboard.press('Tab')
    const { label, ring } = Value.Parse(Focused, await page.evaluate(focused))
    reached.push(label)
    if (!label.startsWith('Select')) expect([label, ring]).toEqual([label, true])
  }
  expect(reached[0]).toBe(strings.skipToMedia)
  const order = [
    strings.header.upload,
    strings.header.signOut,
    strings.filter.search,
    strings.selection.select('harbour.jpg'),
  ]
  const places = order.map((label) => reached.indexOf(label))
  expect(places.every((place) => place >= 0)).toBe(true)
  expect(places).toEqual([...places].sort((a, b) => a - b))
  // The skip link leads past these controls.
  await guest.button(strings.skipToMedia).focus()
  await page.keyboard.press('Enter')
  await page.keyboard.press('Tab')
  await expect
    .poll(() => page.evaluate(focused))
    .toMatchObject({ label: expect.stringContaining('harbour.jpg') })
  await page.keyboard.press('Tab')
  await page.keyboard.press('Space')
  await page.getByText(strings.selection.count(1)).first().waitFor()
  await page.keyboard.press('Delete')
  await page.getByRole('dialog', { name: strings.deletion.title(1) }).waitFor()
  await page.keyboard.press('Escape')
  await page.keyboard.press('Escape')
  await page.getByText(strings.selection.count(1)).first().waitFor({ state: 'detached' })
})
