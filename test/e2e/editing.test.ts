import type { Browser } from 'playwright-core'
import { Type } from 'typebox'
import { Value } from 'typebox/value'
import { beforeAll, expect, test } from 'vitest'
import { loadTexts, strings } from '../../packages/gallery/src/strings.ts'
import { sharedBrowser } from '../harness/chromium.ts'
import { runHere } from '../harness/commands.ts'
import { recordPreview } from '../harness/pictures.ts'
import type { SharedServer } from '../harness/server.ts'
import { sharedServer } from '../harness/shared-server.ts'
import { makeToken } from '../harness/token.ts'
import { uniqueName } from '../harness/unique-name.ts'
import { until } from '../harness/until.ts'
import { upload } from '../harness/upload.ts'
import { readItem, readItems } from '../harness/wire.ts'
import { expectAccessible } from './accessibility.ts'
import { picture } from './files.ts'
import { visit } from './visit.ts'

const Texts = Type.Object({
  filename: Type.String(),
  alt_text: Type.Union([Type.String(), Type.Null()]),
  caption: Type.Union([Type.String(), Type.Null()]),
})

await loadTexts('details', 'labels')

let browser: Browser
let server: SharedServer
let id: string
beforeAll(async () => {
  server = await sharedServer()
  browser = await sharedBrowser()
  id = (await upload(server, new Uint8Array(await picture(1).jpeg().toBuffer()), { name: 'harbour.jpg' })).id
})

const stored = async () => Value.Parse(Texts, await (await server.request(`/api/media/${id}`)).json())

async function opened(token: string) {
  const guest = await visit(browser, { ...server, token }, { hash: `#item=${id}` })
  await guest.signIn(token)
  await guest.button(strings.viewer.details).click()
  return guest
}

test('M5, M6, G32 texts are changed; an edit by others is shown beside the typed text, and is not overwritten unseen', async () => {
  await using guest = await opened(server.token)
  const { page } = guest
  await guest.button(strings.details.edit).click()
  await page.getByLabel(strings.details.name, { exact: true }).fill('port.jpg')
  await page.getByLabel(strings.details.altText, { exact: true }).fill('Ships in a port')
  // Arrow keys move the cursor.
  await page.keyboard.press('ArrowLeft')
  await page.getByLabel(strings.details.caption, { exact: true }).fill('Summer\n2026')
  await guest.button(strings.details.save).click()
  await page.getByText(strings.details.saved, { exact: true }).first().waitFor()
  await page.getByRole('dialog', { name: strings.viewer.label('port.jpg') }).waitFor()
  expect(await stored()).toMatchObject({
    filename: 'port.jpg',
    alt_text: 'Ships in a port',
    caption: 'Summer\n2026',
  })

  const byOthers = (texts: object) =>
    server.request(`/api/media/${id}`, {
      method: 'PATCH',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(texts),
    })
  // Another text: both edits are saved.
  await guest.button(strings.details.edit).click()
  const caption = page.getByLabel(strings.details.caption, { exact: true })
  await caption.fill('Summer')
  await byOthers({ alt_text: 'Boats in a port' })
  await guest.button(strings.details.save).click()
  await page.locator('dd', { hasText: 'Boats in a port' }).waitFor()
  expect(await stored()).toMatchObject({ alt_text: 'Boats in a port', caption: 'Summer' })

  // The same text.
  await guest.button(strings.details.edit).click()
  await caption.fill('Mine')
  await byOthers({ caption: 'Theirs', alt_text: 'Ships' })
  await guest.button(strings.details.save).click()
  await page.getByRole('alert').getByText(strings.details.conflict).waitFor()
  expect(await stored()).toMatchObject({ caption: 'Theirs', alt_text: 'Ships' })
  await expect.poll(() => caption.inputValue()).toBe('Mine')
  await expect
    .poll(() => page.getByLabel(strings.details.altText, { exact: true }).inputValue())
    .toBe('Ships')
  await guest.button(strings.details.useTheirsOf(strings.details.caption)).click()
  await expect.poll(() => caption.inputValue()).toBe('Theirs')
  // What was taken is not offered again, and nothing is left to compare.
  await until('no text of others is shown', async () => (await page.locator('.their-text').count()) === 0)
  await expect.poll(() => page.getByRole('alert').getByText(strings.details.conflict).count()).toBe(0)
  await expect.poll(() => guest.button(strings.details.saveMine).count()).toBe(0)
  await caption.fill('Mine')
  // Once more, after the conflict was shown.
  await byOthers({ caption: 'Theirs again' })
  await guest.button(strings.details.save).click()
  await page.locator('.their-text', { hasText: 'Theirs again' }).waitFor()
  expect((await stored()).caption).toBe('Theirs again')
  await guest.button(strings.details.saveMine).click()
  await page.locator('dd', { hasText: 'Mine' }).waitFor()
  expect(await stored()).toMatchObject({ caption: 'Mine', alt_text: 'Ships', filename: 'port.jpg' })

  // Others have restored the text when it is saved again.
  await guest.button(strings.details.edit).click()
  await caption.fill('Mine too')
  await byOthers({ caption: 'Theirs' })
  await guest.button(strings.details.save).click()
  await page.locator('.their-text', { hasText: 'Theirs' }).waitFor()
  await byOthers({ caption: 'Mine' })
  await guest.button(strings.details.saveMine).click()
  await page.locator('dd', { hasText: 'Mine too' }).waitFor()
})

test('M11, G46 a focal point is set by a click, arrow keys and touch, undone and removed, and the crops follow it', async () => {
  const bucket = uniqueName('focus')
  const { token, authorization } = await makeToken(
    server,
    '--bucket',
    bucket,
    '--scope',
    'media:read,media:write',
  )
  await runHere(server.data, 'bucket set', bucket, '--variants', 'card=300x100:cover tall=100x300:cover 320')
  const request: typeof server.request = (path, init) =>
    server.request(path, { ...init, headers: { authorization, ...init?.headers } })
  const made = await request('/api/media', {
    method: 'POST',
    headers: { 'content-type': 'image/jpeg' },
    body: new Uint8Array(await picture(3).resize(900, 600).jpeg().toBuffer()),
  })
  const { id } = await readItem(made)
  await recordPreview(request, id)
  const read = async () => (await readItem(await request(`/api/media/${id}`))).focus
  await using guest = await visit(
    browser,
    { ...server, token },
    { hash: `#item=${id}`, options: { hasTouch: true } },
  )
  await guest.signIn(token)
  const { page } = guest
  const { focus: texts } = strings.details
  await guest.button(strings.viewer.details).click()
  await guest.button(strings.details.edit).click()
  const target = page.locator('.focus-target')
  await target.waitFor()
  await page.evaluate(`document.querySelector('.focus-target img').decode()`)
  const crops = page.getByRole('list', { name: texts.crops }).getByRole('listitem')
  const positions = () =>
    page.evaluate(
      `[...document.querySelectorAll('.focus-crops img')].map((image) => image.style.objectPosition)`,
    )
  await expect.poll(() => crops.count()).toBe(0)
  const { width = 0, height = 0 } = (await target.boundingBox()) ?? {}
  await target.click({ position: { x: width * 0.25, y: height * 0.5 } })
  await expect.poll(() => crops.count()).toBe(2)
  await page.getByText(texts.at(25, 50), { exact: true }).waitFor()
  // A picture of 3:2 fills the width of one crop, and the height of the other.
  const before = await positions()
  expect(before).toEqual([
    expect.stringMatching(/^50% (49|50)(\.\d)?%$/),
    expect.stringMatching(/^1[78](\.\d)?% 50%$/),
  ])
  for (const key of ['ArrowRight', 'ArrowRight', 'ArrowDown', 'Shift+ArrowDown'])
    await page.keyboard.press(key)
  await page.getByText(texts.at(27, 61), { exact: true }).waitFor()
  expect(await positions()).not.toEqual(before)
  await expectAccessible(guest, 'focal point')
  // Neither another file nor the end of the viewer.
  await page.keyboard.press('Escape')
  await page.getByText(texts.none, { exact: true }).waitFor()
  await target.tap({ position: { x: width * 0.5, y: height * 0.1 } })
  await page.getByText(texts.at(50, 10), { exact: true }).waitFor()
  await guest.button(strings.details.save).click()
  await page.getByText(strings.details.saved, { exact: true }).first().waitFor()
  const saved = await read()
  expect(saved?.x).toBeCloseTo(0.5, 1)
  expect(saved?.y).toBeCloseTo(0.1, 1)

  // Others set another point.
  await guest.button(strings.details.edit).click()
  await page.getByText(texts.at(50, 10), { exact: true }).waitFor()
  await target.press('ArrowUp')
  await request(`/api/media/${id}`, {
    method: 'PATCH',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ focus: { x: 0.9, y: 0.8 } }),
  })
  await guest.button(strings.details.save).click()
  await page.locator('.their-text', { hasText: texts.at(90, 80) }).waitFor()
  expect(await read()).toEqual({ x: 0.9, y: 0.8 })
  await guest.button(strings.details.useTheirsOf(texts.legend)).click()
  await page.locator('.focus-place', { hasText: texts.at(90, 80) }).waitFor()
  await guest.button(texts.clear).click()
  await expect.poll(() => page.evaluate('document.activeElement.className')).toBe('focus-target')
  await guest.button(strings.details.save).click()
  await expect.poll(read).toBe(null)
})

test('M6 an edit is saved although the first variant was rendered in the meantime', async () => {
  const file = await upload(server, new Uint8Array(await picture(2).jpeg().toBuffer()), { name: 'quay.jpg' })
  const context = await browser.newContext({ reducedMotion: 'reduce' })
  await context.route(/[?&]variant=/, (route) => route.abort())
  await using guest = await visit(browser, server, { hash: `#item=${file.id}`, context })
  const { page } = guest
  await guest.signIn(server.token)
  await guest.button(strings.viewer.details).click()
  await guest.button(strings.details.edit).click()
  await page.getByLabel(strings.details.name, { exact: true }).fill('pier.jpg')

  const etag = async () => (await server.request(`/api/media/${file.id}`)).headers.get('etag')
  const before = await etag()
  await server.request(`${new URL(file.url).pathname}?variant=thumb`)
  await until('the entity tag changes', async () => (await etag()) !== before)

  await guest.button(strings.details.save).click()
  await page.getByRole('dialog', { name: strings.viewer.label('pier.jpg') }).waitFor()

  // G32 a save that ends while the texts of another file are edited does not close their form.
  const { promise: released, resolve: release } = Promise.withResolvers<void>()
  await page.route(`**/api/media/${file.id}`, async (route) => {
    if (route.request().method() === 'PATCH') await released
    await route.continue()
  })
  await guest.button(strings.details.edit).click()
  await page.getByLabel(strings.details.name, { exact: true }).fill('quay again.jpg')
  await guest.button(strings.details.save).click()
  await guest.button(strings.viewer.next).click()
  await guest.button(strings.details.edit).click()
  const caption = page.getByLabel(strings.details.caption, { exact: true })
  await caption.fill('typed during the save')
  release()
  await page.locator('.tile', { hasText: 'quay again.jpg' }).waitFor({ state: 'attached' })
  await expect.poll(() => caption.inputValue()).toBe('typed during the save')
})

test('G3 after an upgrade, a part of an open page whose code has another name asks for a reload', async () => {
  const scopes = 'media:read,media:write,tokens:manage'
  const { token } = await makeToken(server, '--bucket', server.bucket, '--scope', scopes)
  await using guest = await opened(token)
  const { page } = guest
  const gone = { status: 404, body: '' }
  await page.route(/assets\/(edit-details|trash-view|tokens-view)-/, (route) => route.fulfill(gone))
  const details = page.getByRole('complementary', { name: strings.details.title })
  await guest.button(strings.details.edit).click()
  await details.getByRole('alert').getByText(strings.notLoaded).waitFor()
  await guest.button(strings.cancel).click()
  await guest.button(strings.details.edit).waitFor()
  for (const hash of ['#trash', '#tokens']) {
    await page.evaluate(`location.hash = '${hash}'`)
    await page.getByRole('main').getByRole('alert').getByText(strings.notLoaded).waitFor()
    await page.evaluate(`location.hash = ''`)
    await page.locator('.timeline').waitFor()
  }
})

test('A3 a token without media:write offers no editing', async () => {
  const { token } = await makeToken(server, '--bucket', server.bucket, '--scope', 'media:read')
  await using guest = await opened(token)
  await guest.page.getByRole('complementary', { name: strings.details.title }).waitFor()
  await expect.poll(() => guest.button(strings.details.edit).count()).toBe(0)
})

test('G39, M7 labels that cannot be saved are refused in the form, with the field that is wrong, and the refusal goes away', async () => {
  const { authorization } = await makeToken(server, '--bucket', uniqueName('mistyped'))
  const file = await upload(server, 'a label', { name: 'a.txt', authorization })
  const phone = { viewport: { width: 375, height: 667 }, hasTouch: true, isMobile: true }
  await using guest = await visit(browser, server, { hash: `#item=${file.id}`, options: phone })
  await guest.signIn(authorization.replace('Bearer ', ''))
  const { page } = guest
  await guest.button(strings.viewer.details).click()
  await guest.button(strings.details.edit).click()
  const { labels } = strings
  const key = (row: number) => page.getByLabel(labels.keyOf(row), { exact: true })
  const value = (row: number) => page.getByLabel(labels.valueOf(row), { exact: true })
  const save = guest.button(strings.details.save)
  await key(1).fill('my key')
  await value(1).fill('one')
  /** The refusal covers no button: a click reaches it. */
  const refused = async (text: string, field: 'key' | 'value') => {
    await save.click()
    await page.getByRole('alert').getByText(text, { exact: true }).waitFor()
    await expect
      .poll(() => page.evaluate('[document.activeElement.name, document.activeElement.ariaInvalid].join()'))
      .toBe(`label-${field},true`)
    await expect.poll(() => page.locator('.notice').count()).toBe(0)
  }
  await refused(labels.badKey('my key'), 'key')
  await expectAccessible(guest, 'a refused label')
  await page.setViewportSize(phone.viewport)
  await key(1).fill('')
  await refused(labels.noKey('one'), 'key')
  await key(1).fill('a')
  await value(1).fill('x'.repeat(201))
  await refused(labels.badValue('a'), 'value')
  await value(1).fill('one')
  await guest.button(labels.add).click()
  await key(2).fill('A = two')
  await refused(labels.twice('A'), 'key')
  await key(2).fill('Key = value')

  // Others may refuse too, for example the server.
  await page.route(`**/api/media/${file.id}`, (route) =>
    route.request().method() === 'PATCH' ? route.fulfill({ status: 500 }) : route.fallback(),
  )
  await save.click()
  const notSaved = page.getByRole('alert').getByText(strings.details.notSaved(strings.errors.unexpected))
  await notSaved.waitFor()
  await page.unroute(`**/api/media/${file.id}`)
  await save.click()
  await page.getByRole('link', { name: 'key=value' }).waitFor()
  await expect.poll(() => notSaved.count()).toBe(0)
  const { data } = await readItems(await server.request('/api/items', { headers: { authorization } }))
  expect(data.map(({ labels }) => labels)).toEqual([{ a: 'one', key: 'value' }])
})

test('G39, M7, M8, K14 labels are shown, edited, set for a selection, and select files', async () => {
  const { authorization } = await makeToken(server, '--bucket', 'labels-gallery')
  const token = authorization.replace('Bearer ', '')
  const store = async (name: string, labels: string) =>
    server.request('/api/media', {
      method: 'POST',
      body: name,
      headers: {
        authorization,
        'content-type': 'text/plain',
        'content-disposition': `attachment; filename="${name}.txt"`,
        'mediabucket-labels': labels,
      },
    })
  for (const [name, labels] of [
    ['one', 'album="42", user="7"'],
    ['two', 'album="42"'],
    ['three', ''],
  ] as const)
    await store(name, labels)
  await using guest = await visit(browser, { ...server, token })
  await guest.signIn(token)
  const { page, files } = guest
  expect(guest.requests.some((url) => url.includes('/api/labels'))).toBe(false)
  await guest.button(strings.filter.labels).press('Enter')
  const choiceOf = (key: string) => page.getByRole('combobox', { name: key, exact: true })
  await choiceOf('album').selectOption('42 (2)')
  await files.filter({ hasText: 'three.txt' }).waitFor({ state: 'detached' })
  await expect.poll(() => files.count()).toBe(2)
  await choiceOf('user').selectOption('7 (1)')
  await files.filter({ hasText: 'two.txt' }).waitFor({ state: 'detached' })
  await expect.poll(() => new URL(page.url()).hash).toContain('label=album%3D42&label=user%3D7')
  await expectAccessible(guest, 'two chosen labels')
  await page.reload()
  await files.filter({ hasText: 'one.txt' }).waitFor()
  await expect.poll(() => files.count()).toBe(1)
  const chosen = page.getByRole('list', { name: strings.filter.chosenLabels }).getByRole('listitem')
  await expect.poll(() => chosen.allTextContents()).toEqual(['album=42', 'user=7'])
  await guest.button(strings.filter.removeLabel('user=7')).press('Enter')
  await files.filter({ hasText: 'two.txt' }).waitFor()
  await expect.poll(() => chosen.allTextContents()).toEqual(['album=42'])
  await expect.poll(() => page.evaluate('document.activeElement.textContent')).toBe(strings.filter.labels)

  await files.filter({ hasText: 'one.txt' }).getByRole('link').first().click()
  await guest.button(strings.viewer.details).click()
  await page.getByRole('link', { name: 'user=7' }).waitFor()
  await guest.button(strings.details.edit).click()
  const value = (row: number) => page.getByLabel(strings.labels.valueOf(row), { exact: true })
  await expect.poll(() => value(2).inputValue()).toBe('7')
  await value(1).fill('43')
  await guest.button(strings.labels.remove('user')).click()
  await guest.button(strings.labels.add).click()
  await page.keyboard.type(' X = y ')
  await guest.button(strings.details.save).click()
  await page.getByRole('link', { name: 'x=y' }).click()
  await files.filter({ hasText: 'two.txt' }).waitFor({ state: 'detached' })
  await expect.poll(() => files.allTextContents()).toEqual([expect.stringContaining('one.txt')])
  await guest.button(strings.filter.labels).click()
  await choiceOf('x').waitFor()
  await expect
    .poll(() => choiceOf('album').locator('option').allTextContents())
    .toEqual([...[strings.filter.anyValue, '42 (1)', '43 (1)']])

  await guest.button(strings.filter.clear).click()
  // The labels that could not be read are read again after the next change.
  await guest.button(strings.filter.labels).click()
  await page.route('**/api/labels*', (request) => request.fulfill({ status: 400 }))
  await guest.button(strings.filter.labels).click()
  await page.getByRole('group', { name: strings.filter.labels }).getByRole('alert').waitFor()
  await page.unroute('**/api/labels*')
  await files.filter({ hasText: 'three.txt' }).getByRole('checkbox').check()
  await files.filter({ hasText: 'two.txt' }).getByRole('checkbox').check()
  await guest.button(strings.selected.addLabel).click()
  const dialog = page.getByRole('dialog')
  await guest.button(strings.details.save).click()
  await dialog.getByRole('alert').getByText(strings.labels.noKey('')).waitFor()
  // The labels of the bucket are offered.
  const offered = async (field: string) => {
    const list = await dialog.getByLabel(field, { exact: true }).getAttribute('list')
    const options = await page.locator(`datalist[id="${list}"] option`).all()
    return await Promise.all(options.map((option) => option.getAttribute('value')))
  }
  await expect.poll(() => offered(strings.labels.key)).toEqual(['album', 'x'])
  await expect.poll(() => offered(strings.labels.value)).toEqual([])
  await dialog.getByLabel(strings.labels.key, { exact: true }).fill('album')
  await expect.poll(() => offered(strings.labels.value)).toEqual(['42', '43'])
  await expectAccessible(guest, 'the dialog that labels files')
  await dialog.getByLabel(strings.labels.key, { exact: true }).fill('Group')
  await dialog.getByLabel(strings.labels.value, { exact: true }).fill('both')
  await guest.button(strings.details.save).click()
  await page.getByText(strings.selected.labelled(2)).first().waitFor()
  const found = await server.request('/api/items?label.group=both', { headers: { authorization } })
  expect((await readItems(found)).data.map(({ filename }) => filename)).toEqual(['two.txt', 'three.txt'])
  await choiceOf('group').selectOption('both (2)')
  await files.filter({ hasText: 'one.txt' }).waitFor({ state: 'detached' })
  await expect.poll(() => files.count()).toBe(2)
})
