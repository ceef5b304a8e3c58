import type { Browser, Page } from 'playwright-core'
import { beforeAll, expect, test } from 'vitest'
import { loadTexts, strings } from '../../packages/gallery/src/strings.ts'
import { sharedBrowser } from '../harness/chromium.ts'
import { freePort } from '../harness/free-port.ts'
import { type SharedServer, startServer, type TestServer } from '../harness/server.ts'
import { sharedServer } from '../harness/shared-server.ts'
import { makeToken } from '../harness/token.ts'
import { uniqueName } from '../harness/unique-name.ts'
import { until } from '../harness/until.ts'
import { expectAccessible } from './accessibility.ts'
import { slowDown, type Visit, visit } from './visit.ts'

let browser: Browser
let server: SharedServer
beforeAll(async () => {
  server = await sharedServer()
  browser = await sharedBrowser()
})

await loadTexts('buckets', 'tokens', 'webhooks')
const { buckets, tokens, webhooks } = strings

const allScopes = [
  ...['buckets:manage', 'media:read', 'media:write', 'media:delete', 'tokens:manage', 'webhooks:manage'],
]

/** Sends requests with a service token. */
async function manager(...scopes: string[]) {
  const { token, authorization } = await makeToken(server, '--service', '--scope', scopes.join(','))
  async function send(method: string, path: string, json?: object, headers: Record<string, string> = {}) {
    const init = json === undefined ? {} : { body: JSON.stringify(json) }
    const type = { 'content-type': 'application/json' }
    const response = await server.request(path, {
      ...init,
      method,
      headers: { ...(json && type), authorization, ...headers },
    })
    expect([path, response.status < 300]).toEqual([path, true])
    return Object(response.status === 204 ? null : await response.json())
  }
  return {
    token,
    send,
    create: (name: string, settings: object = {}) => send('POST', '/api/buckets', { name, ...settings }),
    async upload(bucket: string, body: string) {
      const { headers } = new Response(body)
      const type = headers.get('content-type') ?? ''
      const response = await server.request('/api/media', {
        ...{ method: 'POST', body },
        headers: { authorization, 'mediabucket-bucket': bucket, 'content-type': type },
      })
      expect(response.status).toBe(201)
    },
  }
}

/** The page of a service token, at this address. */
async function opened(hash: string, scopes = allScopes) {
  const service = await manager(...scopes)
  const guest = await visit(browser, server, { hash })
  await guest.signIn(service.token)
  const { page } = guest
  const rows = page.locator('.bucket-table tbody tr[data-name]')
  return { guest, page, service, rows, dialog: page.getByRole('dialog'), namesOf: () => namesOf(page) }
}

const namesOf = (page: Page) => page.locator('.bucket-table tbody .bucket-name a').allInnerTexts()

test('G40 the buckets are listed with contents, quota and a line of their usage, sorted and searched', async () => {
  const prefix = uniqueName('list')
  const service = await manager(...allScopes)
  await service.create(`${prefix}-a`, { max_bytes: 100 })
  await service.create(`${prefix}-b`, { private: true, max_items: 4 })
  await service.create(`${prefix}-c`)
  await service.upload(`${prefix}-a`, 'x'.repeat(50))
  await service.upload(`${prefix}-b`, 'x'.repeat(70))
  await service.upload(`${prefix}-b`, 'y')
  const { guest, page, rows, namesOf } = await opened('')
  await using _ = guest
  await page.getByRole('heading', { name: buckets.title }).waitFor()
  expect(new URL(page.url()).hash).toBe('#buckets')
  await page.getByLabel(buckets.search).fill(`${prefix.toUpperCase()}-`)
  await expect.poll(namesOf).toEqual([`${prefix}-a`, `${prefix}-b`, `${prefix}-c`])
  await page.getByText(buckets.totals(3, 3, '121 bytes')).waitFor()
  await rows.first().getByText(buckets.of('50 bytes', '100 bytes')).waitFor()
  await rows.nth(1).getByText(buckets.of('2', '4')).waitFor()
  const meters = page.getByRole('meter')
  await expect.poll(() => meters.count()).toBe(2)
  expect(await meters.first().getAttribute('value')).toBe('0.5')
  await rows
    .nth(1)
    .getByRole('img', { name: buckets.trend('0 bytes', '71 bytes') })
    .waitFor()

  const column = (name: string) => page.getByRole('columnheader', { name })
  await column(buckets.columns.bytes).getByRole('button').click()
  await expect.poll(namesOf).toEqual([`${prefix}-b`, `${prefix}-a`, `${prefix}-c`])
  await expect.poll(() => column(buckets.columns.bytes).getAttribute('aria-sort')).toBe('descending')
  await column(buckets.columns.bytes).getByRole('button').click()
  await expect.poll(namesOf).toEqual([`${prefix}-c`, `${prefix}-a`, `${prefix}-b`])
  await expect.poll(() => column(buckets.columns.bytes).getAttribute('aria-sort')).toBe('ascending')
  await column(buckets.columns.created).getByRole('button').click()
  await expect.poll(namesOf).toEqual([`${prefix}-c`, `${prefix}-b`, `${prefix}-a`])
  await column(buckets.columns.items).getByRole('button').click()
  await expect.poll(async () => (await namesOf()).at(0)).toBe(`${prefix}-b`)
  // The address names what is listed.
  await page.reload()
  await expect.poll(async () => (await namesOf()).at(0)).toBe(`${prefix}-b`)
  await expect.poll(() => page.getByLabel(buckets.search).inputValue()).toBe(`${prefix}-`)
  await page.getByLabel(buckets.search).fill('no-such-name')
  await page.getByText(buckets.noMatch('no-such-name')).waitFor()
})

test('G40, G43, A3 for a service token without buckets:manage, the page says that it is missing, and the command', async () => {
  const { token } = await makeToken(server, '--service', '--scope', 'media:read')
  await using guest = await visit(browser, server, { hash: '' })
  const { page } = guest
  await guest.signIn(token)
  const command = 'npx mediabucket token create --service --scope buckets:manage,media:read'
  await page.getByText(tokens.missing('buckets:manage', 1)).waitFor()
  await page.getByText(command, { exact: true }).waitFor()
  await expectAccessible(guest, 'the missing scope of the buckets')
  await guest.button(strings.header.signOut).click()
  const created = await server.command(...command.split(' ').slice(2))
  await guest.signIn(created.stdout.trim())
  await page.getByRole('heading', { name: buckets.title }).waitFor()
  await page.reload()
  await page.getByRole('heading', { name: buckets.title }).waitFor()
  await guest.button(strings.header.signOut).click()
  await page.getByText(strings.signIn.signedOut).waitFor()
})

test('G40 many buckets are loaded as the page is scrolled, and the document has a bounded number of rows', async () => {
  const prefix = uniqueName('many')
  const service = await manager('buckets:manage')
  const all = Array.from({ length: 400 }, (_, index) => `${prefix}-${`${index}`.padStart(4, '0')}`)
  for (let from = 0; from < all.length; from += 50)
    await Promise.all(all.slice(from, from + 50).map((name) => service.create(name)))
  const { guest, page, rows, namesOf } = await opened(`#buckets?name=${prefix}-`, ['buckets:manage'])
  await using _ = guest
  await page.getByText(buckets.totals(400, 0, '0 bytes')).waitFor()
  const scrolledPast = Promise.withResolvers<void>()
  await page.route('**/usage?*', async (route) => {
    await scrolledPast.promise
    await route.continue()
  })
  const seen = new Set<string>()
  let most = 0
  await until('the last bucket', async () => {
    const names = await namesOf()
    for (const name of names) seen.add(name)
    most = Math.max(most, names.length)
    await page.mouse.wheel(0, 600)
    return names.at(-1) === all.at(-1)
  })
  expect([...seen]).toEqual(all)
  expect(most).toBeLessThan(60)
  expect(await page.getByRole('table').getAttribute('aria-rowcount')).toBe('401')
  expect(await rows.last().getAttribute('aria-rowindex')).toBe('401')

  // The usage of rows that were scrolled past before their turn is not requested.
  scrolledPast.resolve()
  await rows.last().getByRole('img').waitFor()
  expect(guest.requests.filter((url) => url.includes('/usage?')).length).toBeLessThan(100)

  // A bucket is opened, and Back leads to the same place and focus.
  const opens = page.getByRole('link', { name: all[390] ?? '', exact: true })
  await opens.focus()
  const scrolled = Number(await page.evaluate('scrollY'))
  await page.keyboard.press('Enter')
  await page.getByRole('heading', { name: buckets.settings }).waitFor()
  await page.goBack()
  await until('the focus', async () => (await opens.count()) === 1 && (await isFocused(page, all[390])))
  expect(Number(await page.evaluate('scrollY'))).toBe(scrolled)
})

test('G40 another order that could not be loaded is loaded when a person tries again', async () => {
  const prefix = uniqueName('again')
  const service = await manager(...allScopes)
  // More than one response has.
  const all = Array.from({ length: 130 }, (_, index) => `${prefix}-${100 + index}`)
  await Promise.all(all.map((name) => service.create(name)))
  const { guest, page, namesOf } = await opened(`#buckets?name=${prefix}-`)
  await using _ = guest
  await expect.poll(async () => (await namesOf()).at(0)).toBe(all[0])
  await page.route('**/api/buckets?order=name-desc*', (route) => route.fulfill({ status: 500 }))
  await page.getByRole('columnheader', { name: buckets.columns.name }).getByRole('button').click()
  await page.getByRole('alert').getByText(buckets.failedToLoad).waitFor()
  await page.unrouteAll()
  await guest.button(strings.tryAgain).click()
  await expect.poll(async () => (await namesOf()).at(0)).toBe(all.at(-1))
  await page.getByRole('alert').waitFor({ state: 'detached' })
})

const isFocused = async (page: Page, text: string | undefined) =>
  (await page.evaluate('document.activeElement?.textContent')) === text

test('G41, BK7 settings are changed, and a conflict shows the values of the others', async () => {
  const name = uniqueName('set')
  const { guest, page, service } = await (async () => {
    const made = await manager('buckets:manage')
    await made.create(name, { max_bytes: 5_000_000_000, max_items: 10 })
    return await opened(`#buckets/${name}`, ['buckets:manage'])
  })()
  await using _ = guest
  const size = page.getByLabel(buckets.maxBytes, { exact: true })
  const items = page.getByLabel(buckets.maxItems)
  await expect.poll(() => size.inputValue()).toBe('5')
  await expect.poll(() => page.getByLabel(buckets.unit).inputValue()).toBe('3')
  await size.fill('1.5')
  await page.getByLabel(buckets.unit).selectOption('2')
  await page.getByLabel(buckets.private).check()
  await page.getByLabel(buckets.trashDays).fill('30')
  await page.getByLabel(buckets.metadata).selectOption('taken')
  await page.getByLabel(buckets.maxFileSize, { exact: true }).fill('25')
  await page.getByLabel(buckets.types).fill('image/*,  application/pdf')
  await guest.button(buckets.save).click()
  await page.getByText(buckets.saved).first().waitFor()
  const read = () => service.send('GET', `/api/buckets/${name}`)
  expect(await read()).toMatchObject({
    ...{ max_bytes: 1_500_000, max_items: 10, private: true, trash_days: 30 },
    ...{ remove_metadata: true, keep_taken_at: true },
    ...{ max_file_size: 25_000_000, types: ['image/*', 'application/pdf'] },
  })

  // Others change a setting that is edited here, and one that is not.
  await items.fill('20')
  await service.send('PATCH', `/api/buckets/${name}`, { max_items: 500, trash_days: 7 })
  await guest.button(buckets.save).click()
  await page.getByRole('alert').getByText(buckets.conflict).waitFor()
  await page.getByText(buckets.now('500')).waitFor()
  await expect.poll(() => items.inputValue()).toBe('20')
  await expect.poll(() => page.getByLabel(buckets.trashDays).inputValue()).toBe('7')
  expect(await read()).toMatchObject({ max_items: 500, trash_days: 7 })
  await expectAccessible(guest, 'conflict')
  await guest.button(buckets.save).click()
  await expect.poll(read).toMatchObject({ max_items: 20, trash_days: 7 })
  await expect.poll(() => guest.button(buckets.save).getAttribute('aria-disabled')).toBe('false')
  // The value of the others is taken.
  await items.fill('21')
  await service.send('PATCH', `/api/buckets/${name}`, { max_items: null })
  await guest.button(buckets.save).click()
  await page.getByText(buckets.now(buckets.noLimit)).waitFor()
  await guest.button(buckets.take).click()
  await expect.poll(() => items.inputValue()).toBe('')
  await page.getByLabel(buckets.itemDays).fill('3')
  await guest.button(buckets.save).click()
  await expect.poll(read).toMatchObject({ max_items: null, item_days: 3, trash_days: 7 })
  // What the service refuses is shown.
  await page.getByLabel(buckets.itemDays).fill('99999999')
  await guest.button(buckets.save).click()
  await page.getByRole('alert').filter({ hasText: 'item_days' }).waitFor()
})

test('G41, V20, V21 the sizes of the service are shown with what they keep, can be public, and are the first ones of a bucket', async () => {
  const { pictures } = buckets
  await using own = await startServer({
    MEDIABUCKET_VARIANTS: 'thumb=300, loop=320:animated, card=640x360:cover:jpeg:q80',
  })
  await own.command('bucket', 'create', 'shop', '--private', 'on')
  const { token } = await makeToken(own, '--service', '--scope', 'buckets:manage')
  await using guest = await visit(browser, { ...own, bucket: 'shop' }, { hash: '#buckets/shop' })
  const { page } = guest
  await guest.signIn(token)
  const list = page.getByRole('list', { name: pictures.serviceSizes })
  await expect
    .poll(() => list.getByRole('listitem').allTextContents())
    .toEqual([
      `thumb: 300 × 300, ${pictures.fits.contain}`,
      `medium: 1600 × 1600, ${pictures.fits.contain}`,
      `loop: 320 × 320, ${pictures.fits.contain}, WEBP, ${pictures.animated}`,
      `card: 640 × 360, ${pictures.fits.cover}, JPEG, ${pictures.quality} 80`,
    ])
  await page.getByRole('checkbox', { name: 'loop', exact: true }).check()
  await expectAccessible(guest, 'sizes of the service')
  await guest.button(buckets.save).click()
  await page.getByText(buckets.saved).first().waitFor()
  await page.getByLabel(pictures.ownSizes).check()
  await guest.button(buckets.save).click()
  await until('the sizes', async () => {
    const { stdout } = await own.command('bucket', 'list', '--json')
    const shop = stdout.split('\n').find((line) => line.includes('"shop"')) ?? '{}'
    return Object(JSON.parse(shop)).variants !== null
  })
  const { stdout } = await own.command('bucket', 'list', '--json')
  const shop = JSON.parse(stdout.split('\n').find((line) => line.includes('"shop"')) ?? '{}')
  expect(shop).toMatchObject({
    public_variants: ['loop'],
    variants: ['thumb=300', 'medium=1600', 'loop=320:webp:animated', 'card=640x360:cover:jpeg:q80'],
  })
})

test('G41 a size that is edited keeps its unit if others have chosen another one', async () => {
  const name = uniqueName('unit')
  const { guest, page, service } = await opened('', ['buckets:manage'])
  await using _ = guest
  await service.create(name, { max_bytes: 5_000_000_000 })
  await page.goto(`${server.url}/#buckets/${name}`)
  await page.getByLabel(buckets.maxBytes, { exact: true }).fill('2')
  await service.send('PATCH', `/api/buckets/${name}`, { max_bytes: 700_000_000 })
  await guest.button(buckets.save).click()
  await page.getByText(buckets.now('700 MB')).waitFor()
  await expect.poll(() => page.getByLabel(buckets.unit).inputValue()).toBe('3')
  await guest.button(buckets.save).click()
  await expect
    .poll(() => service.send('GET', `/api/buckets/${name}`))
    .toMatchObject({ max_bytes: 2_000_000_000 })
})

test('G41, V19, V20, V21 sizes of pictures are edited in rows, with mistakes beside them, and made public after a warning', async () => {
  const { pictures } = buckets
  const name = uniqueName('sizes')
  const { guest, page, service } = await opened('', ['buckets:manage'])
  await using _ = guest
  await service.create(name, { private: true })
  const read = () => service.send('GET', `/api/buckets/${name}`)
  await page.goto(`${server.url}/#buckets/${name}`)
  await page.getByLabel(pictures.ownSizes).check()
  const row = (number: number) => page.getByRole('group', { name: pictures.sizeNumber(number), exact: true })
  await expect.poll(() => row(2).getByLabel(pictures.width).inputValue()).toBe('1600')
  await guest.button(pictures.addSize).click()
  await until('the focus in the new row', () =>
    page.evaluate('document.activeElement.closest("li:last-child") !== null'),
  )
  await page.keyboard.type('-Card!')
  await row(3).getByLabel(pictures.width).fill('640 px')
  await guest.button(buckets.save).click()
  await row(3).getByText(pictures.mistakes.name).waitFor()
  await page.getByRole('alert').getByText(pictures.wrongSizes).waitFor()
  await expectAccessible(guest, 'mistakes')
  expect((await read()).variants).toBe(null)
  await row(3).getByLabel(pictures.name).fill('card')
  await row(3).getByLabel(pictures.width).fill('4097')
  await row(3).getByText(pictures.mistakes.side).waitFor()
  await row(3).getByLabel(pictures.width).fill('640')
  await row(3).getByLabel(pictures.height).fill('360')
  await row(3).getByLabel(pictures.fit).selectOption('cover')
  await row(3).getByLabel(pictures.quality).fill('80')
  await row(3).getByLabel(pictures.format).selectOption('gif')
  await row(3).getByText(pictures.mistakes.qualityFormat).waitFor()
  await row(3).getByLabel(pictures.format).selectOption('webp')
  await row(3).getByLabel(pictures.animated).check()
  await row(1).getByLabel(pictures.width).fill('320')
  await page.getByLabel(pictures.crop).selectOption('attention')
  await page.getByRole('checkbox', { name: 'card', exact: true }).check()
  await page.getByText(pictures.publicWarning('card')).waitFor()
  await page.getByLabel(buckets.publicKeys).check()
  await page.getByText(buckets.publicKeysWarning).waitFor()
  await page.getByLabel(buckets.publicList).check()
  await guest.button(buckets.save).click()
  await page.getByText(buckets.saved).first().waitFor()
  expect(await read()).toMatchObject({
    variants: ['thumb=320', 'medium=1600', 'card=640x360:cover:webp:q80:animated'],
    ...{ public_variants: ['card'], crop: 'attention', public_keys: true, public_list: true },
  })
  // Nothing differs from what is saved.
  await guest.button(buckets.save).click()
  await page.getByText(buckets.unchanged).first().waitFor()

  // Others change the sizes too.
  await guest.button(pictures.removeSize('card')).click()
  await until('the focus on the button', () =>
    page.evaluate('document.activeElement.matches("button.small")'),
  )
  await service.send('PATCH', `/api/buckets/${name}`, { variants: ['thumb=100', 'wide=900x300:cover'] })
  await guest.button(buckets.save).click()
  await page.getByText(buckets.now('thumb=100, wide=900x300:cover')).waitFor()
  await guest.button(buckets.take).click()
  await expect.poll(() => row(2).getByLabel(pictures.name).inputValue()).toBe('wide')
  // The sizes of the service again.
  await page.getByLabel(pictures.ownSizes).uncheck()
  await guest.button(buckets.save).click()
  await expect.poll(async () => (await read()).variants).toBe(null)
})

test.each([
  ['saves', '', (guest: Visit) => guest.button(buckets.save).click()],
  ['deletes it', '', deleteOpened],
  [
    'shows other days',
    '',
    (guest: Visit) =>
      guest.page
        .getByLabel(buckets.period)
        .selectOption('365')
        .then(() => undefined),
  ],
  ['creates a token', '/tokens', createToken],
])('G44 if others delete the open bucket, the page says so when a person %s', async (_, part, act) => {
  const name = uniqueName('gone')
  const { guest, page, service } = await opened('')
  await using _guest = guest
  await service.create(name)
  await page.goto(`${server.url}/#buckets/${name}${part}`)
  if (part === '') await page.getByLabel(buckets.maxItems).fill('7')
  else await guest.button(tokens.create).waitFor()
  await service.send('DELETE', `/api/buckets/${name}`)
  await act(guest)
  await page.getByRole('heading', { name: buckets.gone(name) }).waitFor()
  await expectAccessible(guest, `gone, ${part}`)
  expect(await page.getByRole('dialog').count()).toBe(0)
  // Another one with its name is opened as usual.
  await service.create(name, { max_items: 3 })
  await page.getByRole('link', { name: buckets.backToBuckets }).click()
  await page.getByLabel(buckets.search).fill(name)
  await page.getByRole('link', { name, exact: true }).click()
  await expect.poll(() => page.getByLabel(buckets.maxItems).inputValue()).toBe('3')
})

async function deleteOpened(guest: Visit): Promise<void> {
  await guest.button(buckets.delete).click()
  const dialog = guest.page.getByRole('dialog')
  await dialog.getByRole('textbox').fill(new URL(guest.page.url()).hash.split('/')[1] ?? '')
  await dialog.getByRole('button', { name: buckets.deleteBucket }).click()
}

async function createToken(guest: Visit): Promise<void> {
  await guest.button(tokens.create).click()
  const dialog = guest.page.getByRole('dialog')
  await dialog.getByRole('button', { name: tokens.create }).click()
}

test('G44 if others delete the bucket whose files are open, the page says so, and its uploads end', async () => {
  const name = uniqueName('gone')
  const { guest, page, service } = await opened('')
  await using _ = guest
  await service.create(name)
  await service.upload(name, 'text of the bucket')
  await page.goto(`${server.url}/#buckets/${name}/files?`)
  await expect.poll(() => guest.files.count()).toBe(1)
  // No part of the files arrives.
  await page.route(/\/api\/(media|uploads)$/, () => undefined)
  const files = [1, 2, 3].map((at) => ({
    name: `${at}.txt`,
    mimeType: 'text/plain',
    buffer: Buffer.from(`${at}`),
  }))
  await guest.choose(strings.header.upload, files)
  await page.getByRole('heading', { name: strings.uploads.sending(0, 3) }).waitFor()
  await service.send('DELETE', `/api/buckets/${name}?items=delete`)
  await page.getByRole('heading', { name: buckets.gone(name) }).waitFor()
  await page.getByText(buckets.notUploaded(3, name)).first().waitFor()
  await page.unrouteAll()
  // A later bucket with the name receives none of them.
  await service.create(name)
  await page.getByRole('link', { name: buckets.backToBuckets }).click()
  await page.getByRole('heading', { name: buckets.title }).waitFor()
  await page.goto(`${server.url}/#buckets/${name}/files?`)
  await page.getByText(strings.listing.empty).waitFor()
  expect(await service.send('GET', `/api/buckets/${name}`)).toMatchObject({ items: 0 })
})

test('G44 a file that is sent to a bucket that others have deleted ends all uploads to it', async () => {
  const name = uniqueName('gone')
  const { guest, page, service } = await opened('')
  await using _ = guest
  await service.create(name)
  await page.route('**/api/changes?*', (route) => route.abort())
  await page.goto(`${server.url}/#buckets/${name}/files?`)
  await page.getByText(strings.listing.empty).waitFor()
  // Deleted when the file is sent: no other request tells the page before.
  await page.route(/\/api\/(media|uploads)$/, async (route) => {
    await service.send('DELETE', `/api/buckets/${name}`)
    await route.continue()
  })
  await guest.choose(strings.listing.chooseFiles, [
    { name: 'late.txt', mimeType: 'text/plain', buffer: Buffer.from('late') },
  ])
  await page.getByRole('heading', { name: buckets.gone(name) }).waitFor()
})

test('G42, G26, G38 tokens and webhooks of a bucket are managed, and its files opened, and the buckets shown again', async () => {
  const name = uniqueName('part')
  const { guest, page, service, dialog } = await opened('')
  await using _ = guest
  await service.create(name, { private: true })
  await service.create(`${name}-other`)
  await service.upload(name, 'text of the bucket')
  await page.getByLabel(buckets.search).fill(name)
  await page.getByRole('link', { name, exact: true }).click()
  await page.getByRole('link', { name: strings.sections.tokens }).click()
  await guest.button(tokens.create).click()
  await dialog.getByLabel(tokens.name).fill('app')
  await dialog.getByRole('button', { name: tokens.create }).click()
  const secret = await dialog.getByLabel(tokens.newToken).inputValue()
  const described = await server.request('/api/token', { headers: { authorization: `Bearer ${secret}` } })
  expect(await described.json()).toMatchObject({ bucket: name, name: 'app', scopes: ['media:read'] })
  await page.keyboard.press('Escape')
  await page.getByRole('listitem').filter({ hasText: 'app' }).waitFor()
  await guest.button(buckets.backToBucket(name)).click()
  await page.getByRole('link', { name: strings.sections.webhooks }).click()
  await page.getByText(webhooks.none).waitFor()
  await guest.button(buckets.backToBucket(name)).click()

  await page.getByRole('link', { name: buckets.openFiles }).click()
  await expect.poll(() => guest.files.count()).toBe(1)
  expect(new URL(page.url()).hash).toMatch(new RegExp(`^#buckets/${name}/files\\?`))
  await guest.files.first().getByRole('link').click()
  await page.getByText('text of the bucket').last().waitFor()
  await page.keyboard.press('Escape')
  await page.reload()
  await expect.poll(() => guest.files.count()).toBe(1)
  await guest.button(strings.settings.label).click()
  await page.getByRole('link', { name: strings.sections.tokens }).click()
  await page.getByRole('listitem').filter({ hasText: 'app' }).waitFor()
  await guest.button(strings.back).click()
  await expect.poll(() => guest.files.count()).toBe(1)
  await expectAccessible(guest, 'files of a bucket')
  await page.getByRole('link', { name: buckets.backToBuckets }).click()
  await page.getByRole('heading', { name: buckets.title }).waitFor()
  await page.goBack()
  await expect.poll(() => guest.files.count()).toBe(1)
})

test.each([
  ['tokens', 'tokens:manage', strings.sections.tokens],
  ['webhooks', 'webhooks:manage', strings.sections.webhooks],
  ['files', 'media:read', buckets.openFiles],
])(
  'G42, A3 without its scope, the page of %s of a bucket says that %s is missing, and the command',
  async (_, scope, link) => {
    const name = uniqueName('lack')
    const { guest, page, service } = await opened('', ['buckets:manage'])
    await using _guest = guest
    await service.create(name)
    await page.getByLabel(buckets.search).fill(name)
    await page.getByRole('link', { name, exact: true }).press('Enter')
    await page.getByRole('link', { name: link }).press('Enter')
    await page.getByText(tokens.missing(scope, 1)).waitFor()
    await page
      .getByText(`npx mediabucket token create --service --scope buckets:manage,${scope}`, { exact: true })
      .waitFor()
    await guest.button(buckets.backToBucket(name)).press('Enter')
    await page.getByRole('heading', { name }).waitFor()
  },
)

test('G42 what gets the focus as soon as a bucket is shown keeps it', async () => {
  const name = uniqueName('focus')
  const { guest, page, service } = await opened('')
  await using _ = guest
  await service.create(name)
  await page.getByLabel(buckets.search).fill(name)
  await page.getByRole('link', { name, exact: true }).focus()
  await page.evaluate(`new MutationObserver((_, observer) => {
    const link = document.querySelector('#media .listing-tools a[href$="/tokens"]')
    if (link === null) return
    observer.disconnect()
    link.focus()
  }).observe(document.body, { childList: true, subtree: true })`)
  await page.keyboard.press('Enter')
  await guest.button(buckets.delete).waitFor()
  expect(await isFocused(page, strings.sections.tokens)).toBe(true)
})

test('G43, BK4, BK10 by keyboard only, a bucket is created with a token, which is shown once, and deleted with its items', async () => {
  const name = uniqueName('new')
  const { guest, page, service, dialog } = await opened('')
  await using _ = guest
  await page.context().grantPermissions(['clipboard-read', 'clipboard-write'])
  await guest.button(buckets.create).press('Enter')
  await dialog.getByLabel(buckets.name, { exact: true }).focus()
  await page.keyboard.type('Not a name')
  await page.keyboard.press('Enter')
  await dialog.getByText(buckets.wrongName).waitFor()
  await page.keyboard.press('ControlOrMeta+A')
  await page.keyboard.type(name)
  await page.keyboard.press('Tab')
  await page.keyboard.type('2')
  await page.keyboard.press('Enter')
  const field = dialog.getByLabel(tokens.newToken)
  await field.waitFor()
  const secret = await field.inputValue()
  await dialog.getByRole('button', { name: tokens.copy }).press('Enter')
  await expect.poll(() => page.evaluate('navigator.clipboard.readText()')).toBe(secret)
  const authorization = `Bearer ${secret}`
  const described = await server.request('/api/token', { headers: { authorization } })
  expect(await described.json()).toMatchObject({
    ...{ bucket: name, scopes: ['media:read', 'media:write', 'media:delete'] },
  })
  expect(await service.send('GET', `/api/buckets/${name}`)).toMatchObject({ max_bytes: 2_000_000_000 })
  await page.keyboard.press('Escape')
  await page.getByRole('heading', { name }).waitFor()
  await expect.poll(() => page.content()).not.toContain(secret)

  await service.upload(name, 'one')
  await service.upload(name, 'two')
  await guest.button(buckets.delete).press('Enter')
  await dialog.getByRole('textbox').focus()
  await page.keyboard.type('another')
  await page.keyboard.press('Enter')
  await dialog.getByText(buckets.nameDiffers).waitFor()
  await page.keyboard.press('ControlOrMeta+A')
  await page.keyboard.type(name)
  await page.keyboard.press('Enter')
  await dialog.getByText(buckets.notEmpty(2)).waitFor()
  expect(await service.send('GET', `/api/buckets/${name}`)).toMatchObject({ items: 2 })
  await expectAccessible(guest, 'delete')
  await dialog.getByRole('button', { name: buckets.deleteWithFiles }).press('Enter')
  await page.getByRole('heading', { name: buckets.title }).waitFor()
  await page.getByText(buckets.deleted(name)).first().waitFor()
  expect((await server.request('/api/media', { headers: { authorization } })).status).toBe(401)
  await page.getByLabel(buckets.search).fill(name)
  await page.getByText(buckets.noMatch(name)).waitFor()
})

test('G43, BK10 a bucket that was deleted and created again is deleted only when the button is pressed again', async () => {
  const name = uniqueName('again')
  const { guest, page, service, dialog } = await opened('')
  await using _ = guest
  await service.create(name)
  await page.goto(`${server.url}/#buckets/${name}`)
  await guest.button(buckets.delete).click()
  await dialog.getByRole('textbox').fill(name)
  await service.send('DELETE', `/api/buckets/${name}`)
  await service.create(name)
  await dialog.getByRole('button', { name: buckets.deleteBucket }).click()
  await dialog.getByText(buckets.changedBeforeDeletion).waitFor()
  await expectAccessible(guest, 'another bucket')
  expect(await service.send('GET', `/api/buckets/${name}`)).toMatchObject({ name })
  await dialog.getByRole('button', { name: buckets.deleteBucket }).click()
  await page.getByText(buckets.deleted(name)).first().waitFor()
})

test('G40 the arrow keys lead from row to row, also to rows that were not drawn', async () => {
  const prefix = uniqueName('keys')
  const service = await manager('buckets:manage')
  const all = Array.from({ length: 45 }, (_, index) => `${prefix}-${10 + index}`)
  await Promise.all(all.map((name) => service.create(name)))
  const { guest, page } = await opened(`#buckets?name=${prefix}-`, ['buckets:manage'])
  await using _ = guest
  await page.getByRole('link', { name: all[0] ?? '' }).focus()
  for (const name of all.slice(1)) {
    await page.keyboard.press('ArrowDown')
    await until(`the focus on ${name}`, () => isFocused(page, name))
  }
  await page.keyboard.press('ArrowUp')
  await until('the focus on the row above', () => isFocused(page, all.at(-2)))
  // Each key is a step, however fast they come, and however slow the page is.
  await slowDown(page, 4)
  for (const [key, last] of [
    ['ArrowUp', -32],
    ['ArrowDown', -2],
  ] as const) {
    await Promise.all(Array.from({ length: 30 }, () => page.keyboard.press(key)))
    await until(`the focus 30 rows on by ${key}`, () => isFocused(page, all.at(last)))
  }
})

test('G43, BK5 a bucket whose creation got no response is created once when the button is pressed again', async () => {
  const name = uniqueName('lost')
  const { guest, page, service, dialog } = await opened('')
  await using _ = guest
  // The service receives the requests, and the browser no responses.
  await page.route('**/api/buckets', async (route) => {
    if (route.request().method() !== 'POST') return await route.continue()
    await route.fetch()
    await route.abort()
  })
  await guest.button(buckets.create).click()
  await dialog.getByLabel(buckets.name, { exact: true }).fill(name)
  await dialog.getByLabel(tokens.expiry).selectOption('30')
  await dialog.getByRole('button', { name: buckets.create }).click()
  await dialog.getByText(strings.errors.unreachable).waitFor()
  await page.unrouteAll()
  await dialog.getByRole('button', { name: buckets.create }).click()
  const secret = await dialog.getByLabel(tokens.newToken).inputValue()
  const described = await server.request('/api/token', { headers: { authorization: `Bearer ${secret}` } })
  expect(await described.json()).toMatchObject({ bucket: name })
  await service.send('DELETE', `/api/buckets/${name}`)
})

test('G40, G41 the pages are accessible in three languages, on phones and desktops, in light and dark', async () => {
  const prefix = uniqueName('look')
  const service = await manager('buckets:manage')
  const variants = ['thumb=300', 'medium=1600', 'loop=320:webp:animated', 'card=640x360:cover:jpeg:q80']
  const settings = { max_bytes: 100, private: true, variants, public_variants: ['loop'] }
  await service.create(`${prefix}-${'long-'.repeat(9)}name`, settings)
  await service.create(`${prefix}-b`)
  const { guest, page, rows, dialog } = await opened(`#buckets?name=${prefix}`)
  await using _ = guest
  await rows.nth(1).waitFor()
  for (const language of ['de', 'es', 'en']) {
    await page.goto(`${server.url}/#buckets?name=${prefix}`)
    await rows.nth(1).waitFor()
    await page.locator('[popovertarget=settings]').click()
    await page.locator('#settings select').first().selectOption(language)
    await until('the language', async () => (await page.locator('html').getAttribute('lang')) === language)
    await page.keyboard.press('Escape')
    await expectAccessible(guest, `list, ${language}`)
    await page.locator('.listing-tools .primary').click()
    await dialog.locator('summary').click()
    await expectAccessible(guest, `create, ${language}`)
    await page.keyboard.press('Escape')
    await rows.first().getByRole('link').click()
    await page.locator('.bucket-cards form').waitFor()
    await expectAccessible(guest, `bucket, ${language}`)
  }
})

test('G41, US10 the usage of a bucket is shown by day as bars, and as a table', async () => {
  const name = uniqueName('days')
  const { guest, page, service } = await opened('')
  await using _ = guest
  await service.create(name)
  await service.upload(name, 'x'.repeat(300))
  await service.upload(name, 'y')
  await page.goto(`${server.url}/#buckets/${name}`)
  const chart = (figure: string, days: number, highest: string) =>
    page.getByRole('img', { name: buckets.chart(figure, buckets.days(days), highest) })
  await chart(buckets.figures.bytes, 30, '301 bytes').waitFor()
  await expect.poll(() => page.locator('.bucket-chart rect').count()).toBe(30)
  await page.getByLabel(buckets.figure).selectOption('items')
  await chart(buckets.figures.items, 30, '2').waitFor()
  await page.getByLabel(buckets.period).selectOption('365')
  await chart(buckets.figures.items, 365, '2').waitFor()
  await page.getByText(buckets.numbers).click()
  const rows = page.getByRole('table').getByRole('row')
  await expect.poll(() => rows.count()).toBe(366)
  expect((await rows.nth(1).getByRole('cell').allInnerTexts()).slice(0, 2)).toEqual(['301 bytes', '2'])
  expect((await rows.nth(2).getByRole('cell').allInnerTexts()).slice(0, 2)).toEqual(['0 bytes', '0'])
  // All rows have the same cells.
  await page.getByLabel(buckets.period).selectOption('30')
  await expect.poll(() => rows.count()).toBe(31)
  await expectAccessible(guest, 'usage')
})

test('G40 the list says that the service does not respond, and is loaded again after a restart', async () => {
  await using first = await startServer({ MEDIABUCKET_PORT: `${await freePort()}` })
  const { token, authorization } = await makeToken(first, '--service', '--scope', 'buckets:manage')
  const create = async ({ request }: TestServer, name: string) => {
    const headers = { authorization, 'content-type': 'application/json' }
    const response = await request('/api/buckets', {
      method: 'POST',
      body: JSON.stringify({ name }),
      headers,
    })
    expect(response.status).toBe(201)
  }
  await create(first, 'shop-1')
  await using guest = await visit(browser, first, { hash: '' })
  const { page } = guest
  await guest.signIn(token)
  await page.getByRole('link', { name: 'shop-1', exact: true }).waitFor()
  await first.kill()
  await page.getByLabel(buckets.search).fill('shop')
  await page.getByText(strings.connection.lost).first().waitFor()
  const { port } = new URL(first.url)
  await using again = await startServer({ MEDIABUCKET_PORT: port }, first.data)
  await page.getByText(strings.connection.back).first().waitFor()
  await create(again, 'shop-2')
  await page.getByLabel(buckets.search).fill('shop-')
  await expect.poll(() => namesOf(page)).toEqual(['shop-1', 'shop-2'])
})
