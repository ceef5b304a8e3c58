import { readFile } from 'node:fs/promises'
import type { Browser } from 'playwright-core'
import { Type } from 'typebox'
import { Value } from 'typebox/value'
import { beforeAll, expect, test } from 'vitest'
import { strings } from '../../packages/gallery/src/strings.ts'
import { sharedBrowser } from '../harness/chromium.ts'
import { seed } from '../harness/seed.ts'
import type { SharedServer } from '../harness/server.ts'
import { sharedServer } from '../harness/shared-server.ts'
import { uniqueName } from '../harness/unique-name.ts'
import { until } from '../harness/until.ts'
import { upload } from '../harness/upload.ts'
import { visit } from './visit.ts'

const Items = Type.Object({ data: Type.Tuple([Type.Object({ id: Type.String() })]) })

let browser: Browser
let server: SharedServer
beforeAll(async () => {
  server = await sharedServer()
  browser = await sharedBrowser()
  for (const name of ['one.txt', 'two.txt', 'two.txt', 'three.txt'])
    await upload(server, `The text of ${name}.`, { name })
})

async function opened(token: string, options: Parameters<typeof visit>[2] = {}) {
  const guest = await visit(browser, { ...server, token }, { hash: '', ...options })
  await guest.signIn(token)
  const tiles = guest.page.locator('.tile')
  await tiles.first().waitFor()
  return { guest, page: guest.page, tiles }
}
const counted = (guest: Awaited<ReturnType<typeof visit>>, count: number) =>
  guest.page.getByText(strings.selection.count(count)).first().waitFor()

test('a range includes items that are not loaded; Ctrl+A selects the whole bucket; 500 a request are deleted', async () => {
  const { token } = await seed(server, '--items', '1600', '--bucket', uniqueName('many'))
  const { guest, page, tiles } = await opened(token)
  await using _ = guest
  await tiles.first().getByRole('checkbox').check()
  await until('the size of the bucket', () => page.evaluate('document.documentElement.scrollHeight > 20_000'))
  await page.keyboard.press('End')
  const oldest = await server.request('/api/items?limit=1', {
    headers: { authorization: `Bearer ${token}` },
  })
  const { data } = Value.Parse(Items, await oldest.json())
  const last = page.locator(`[data-id="${data[0].id}"]`)
  await last.getByRole('checkbox').click({ modifiers: ['Shift'] })
  await counted(guest, 1600)
  await page.keyboard.press('Escape')
  await page.getByText(strings.selection.count(1600)).first().waitFor({ state: 'detached' })
  await page.keyboard.press('Control+A')
  await counted(guest, 1600)
  const before = guest.requests.length
  await guest.button(strings.selected.delete).click()
  await guest.button(strings.deletion.confirm(1600)).click()
  await page.getByText(strings.deleted.done(1600)).first().waitFor()
  expect(guest.requests.slice(before).filter((url) => url.endsWith('/api/media'))).toHaveLength(4)
  await page.getByText(strings.listing.empty).waitFor()
})

test('links are copied as Markdown and HTML; files are downloaded as one ZIP archive with different names', async () => {
  const { guest, page, tiles } = await opened(server.token, {
    options: { permissions: ['clipboard-read', 'clipboard-write'] },
  })
  await using _ = guest
  await tiles.filter({ hasText: 'one.txt' }).getByRole('checkbox').check()
  await tiles.filter({ hasText: 'three.txt' }).getByRole('checkbox').check()
  for (const [form, line] of [
    ['markdown', /^\[one\.txt\]\(.*\)\n\[three\.txt\]\(.*\)$/],
    ['html', /^<a href=".*">one\.txt<\/a>\n<a href=".*">three\.txt<\/a>$/],
  ] as const) {
    await guest.button(strings.selected.copyAs).click()
    await guest.button(strings.selected.form[form]).click()
    await until(form, async () => line.test(`${await page.evaluate('navigator.clipboard.readText()')}`))
  }

  await page.keyboard.press('Control+A')
  await counted(guest, 4)
  const [download] = await Promise.all([
    page.waitForEvent('download'),
    guest.button(strings.selected.zip).click(),
  ])
  expect(download.suggestedFilename()).toBe(`${server.bucket}.zip`)
  // The archive stores files without compression.
  const archive = (await readFile(await download.path())).toString('latin1')
  for (const name of ['one.txt', 'two.txt', 'two (2).txt', 'three.txt']) expect(archive).toContain(name)
  expect(archive.match(/The text of two\.txt\./g)).toHaveLength(2)
})

/** Where a finger is on a tile, as shares of its width and height. */
const places = [
  [0.05, 0.05],
  [0.2, 0.2],
  [0.45, 0.1],
  [0.1, 0.45],
  [0.5, 0.5],
  [0.9, 0.1],
  [0.1, 0.9],
  [0.9, 0.9],
] as const

test('a long press selects a file without opening it, wherever the finger is; then a tap selects another', async () => {
  const { guest, page, tiles } = await opened(server.token, {
    options: { hasTouch: true, isMobile: true, viewport: { width: 375, height: 700 } },
  })
  await using _ = guest
  const tools = await guest.context.newCDPSession(page)
  // What is above the files has its final height.
  await page.getByText(strings.files(4)).waitFor()
  for (const view of [strings.view.grid, strings.view.list]) {
    await guest.button(view).tap()
    await page.locator(view === strings.view.list ? '.as-list' : '.as-grid').waitFor()
    for (const [right, down] of places) {
      const box = await tiles.first().boundingBox()
      if (box === null) throw new Error('the tile is not drawn')
      const touchPoints = [{ x: box.x + right * box.width, y: box.y + down * box.height }]
      await tools.send('Input.dispatchTouchEvent', { type: 'touchStart', touchPoints })
      await counted(guest, 1)
      await tools.send('Input.dispatchTouchEvent', { type: 'touchEnd', touchPoints: [] })
      await tiles.nth(1).locator('a').tap()
      await counted(guest, 2)
      await guest.button(strings.selected.clear).tap()
      await until('nothing is selected', async () => (await page.locator('.tile.selected').count()) === 0)
    }
  }
  await expect.poll(() => page.getByRole('dialog').count()).toBe(0)
})

test('G35 Enter opens a file while others are selected, and the focus returns to the file last seen, in a grid and a list', async () => {
  const { guest, page } = await opened(server.token)
  await using _ = guest
  for (const view of [strings.view.grid, strings.view.list]) {
    await guest.button(view).click()
    const tile = (at: number) => guest.page.locator('.tile').nth(at)
    const idOf = async (at: number) => (await tile(at).getAttribute('data-id')) ?? ''
    await tile(0).getByRole('checkbox').check()
    await counted(guest, 1)
    await tile(1).locator('a').focus()
    await page.keyboard.press('Enter')
    const dialog = page.getByRole('dialog')
    await dialog.waitFor()
    await guest.button(strings.viewer.next).click()
    const seen = await idOf(2)
    await until('the next file', () => page.url().includes(seen))
    await page.keyboard.press('Escape')
    await dialog.waitFor({ state: 'detached' })
    await until('the focus', () => page.evaluate(`document.activeElement.dataset.item === '${seen}'`))
    await counted(guest, 1)
    await tile(0).getByRole('checkbox').uncheck()
  }
})

test('G35 the page below an open dialog does not scroll by keys or the wheel', async () => {
  const { token } = await seed(server, '--items', '200', '--bucket', uniqueName('long'))
  const { guest, page, tiles } = await opened(token)
  await using _ = guest
  await tiles.first().getByRole('checkbox').check()
  await guest.button(strings.selected.delete).click()
  await page.getByRole('dialog').waitFor()
  for (const key of ['End', 'PageDown', 'ArrowDown']) await page.keyboard.press(key)
  await page.mouse.wheel(0, 500)
  await page.evaluate('new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))')
  await expect.poll(() => page.evaluate('scrollY')).toBe(0)
  await page.keyboard.press('Escape')
  await page.getByRole('dialog').waitFor({ state: 'detached' })
  await until('a scroll', async () => {
    await page.mouse.wheel(0, 500)
    return page.evaluate('scrollY > 0')
  })
})
