import type { Browser } from 'playwright-core'
import { Type } from 'typebox'
import { Value } from 'typebox/value'
import { beforeAll, expect, test } from 'vitest'
import { loadTexts, strings } from '../../packages/gallery/src/strings.ts'
import { sharedBrowser } from '../harness/chromium.ts'
import { runHere } from '../harness/commands.ts'
import { seed } from '../harness/seed.ts'
import type { SharedServer } from '../harness/server.ts'
import { sharedServer } from '../harness/shared-server.ts'
import { uniqueName } from '../harness/unique-name.ts'
import { until } from '../harness/until.ts'
import { visit } from './visit.ts'

await loadTexts('trash')

let browser: Browser
let server: SharedServer
beforeAll(async () => {
  server = await sharedServer()
  browser = await sharedBrowser()
})

/** A gallery with a new bucket of rows that has a trash. */
async function opened(items: number, options: Parameters<typeof visit>[2] = {}) {
  const { bucket, token } = await seed(server, '--items', `${items}`, '--bucket', uniqueName('trash'))
  await runHere(server.data, 'bucket set', bucket, '--trash-days', '30')
  const guest = await visit(browser, { ...server, token }, { hash: '', ...options })
  await guest.signIn(token)
  const { page } = guest
  const tiles = page.locator('.tile[data-id]')
  await tiles.nth(items - 1).waitFor()
  const shown = async () =>
    Value.Parse(
      Type.Array(Type.String()),
      await page.evaluate(
        `[...document.querySelectorAll('.tile[data-id]')].map(({ dataset }) => dataset.id)`,
      ),
    )
  return { guest, page, tiles, shown, bucket }
}

test('G21 a deletion asks nothing and moves nothing, and undo shows the files again at their places', async () => {
  const { guest, page, tiles, shown } = await opened(12)
  await using _ = guest
  const before = await shown()
  // No refresh shows what the deletion and its undo do not.
  await page.route('**/api/media?page=*', (route) => route.fulfill({ status: 304 }))
  // Lower than the list, and at its end: neither the buttons of the selection nor the focus move the page.
  await page.setViewportSize({ width: 1280, height: 480 })
  await page.evaluate('scrollTo(0, document.documentElement.scrollHeight)')
  const top = () => page.evaluate('scrollY')
  const end = await top()
  expect(end).toBeGreaterThan(100)
  await tiles.nth(11).getByRole('checkbox').check()
  await guest.button(strings.selected.clear).click()
  await guest.button(strings.selected.clear).waitFor({ state: 'detached' })
  await expect.poll(() => top()).toBe(end)
  await page.evaluate('scrollTo(0, 0)')
  for (const index of [0, 5, 11]) await tiles.nth(index).getByRole('checkbox').dispatchEvent('click')
  await tiles.nth(0).getByRole('checkbox').focus()
  await page.keyboard.press('Delete')
  await page.getByText(strings.deleted.trashed(3)).first().waitFor()
  await expect.poll(() => page.getByRole('dialog').count()).toBe(0)
  await until('the focus', () => page.evaluate(`document.activeElement === document.querySelector('main')`))
  await expect.poll(() => top()).toBe(0)
  await expect.poll(() => shown()).toEqual(before.filter((_, index) => ![0, 5, 11].includes(index)))
  await page.getByText(strings.files(9)).waitFor()
  await guest.button(strings.deleted.undo).click()
  await page.getByText(strings.deleted.restored(3)).first().waitFor()
  await until('all files', async () => JSON.stringify(await shown()) === JSON.stringify(before))
  await page.getByText(strings.files(12)).waitFor()

  // In the viewer: the next file is shown, and after Ctrl+Z none is missing.
  await tiles.nth(3).locator('a').click()
  await page.keyboard.press('Tab')
  await guest.button(strings.viewer.delete).click()
  await page.getByText(strings.deleted.trashed(1)).first().waitFor()
  await until('the next file', () => page.url().includes(`item=${before[4]}`))
  await guest.button(strings.deleted.undo).click()
  await until('the restored file', () => page.url().includes(`item=${before[3]}`))
})

test('G21 Ctrl+Z undoes a deletion in a list; without a trash the gallery asks', async () => {
  const { guest, page, shown, tiles, bucket } = await opened(3, { hash: '#view=list' })
  await using _ = guest
  const before = await shown()
  await tiles.nth(1).getByRole('checkbox').check()
  await page.keyboard.press('Delete')
  await page.getByText(strings.deleted.trashed(1)).first().waitFor()
  await expect.poll(() => shown()).toEqual([before[0], before[2]])
  await page.keyboard.press('Control+z')
  await until('all files', async () => JSON.stringify(await shown()) === JSON.stringify(before))
  await tiles.nth(1).getByRole('checkbox').check()
  // The page was loaded while the bucket had a trash.
  await runHere(server.data, 'bucket set', bucket, '--trash-days', '0')
  await page.keyboard.press('Delete')
  await page.getByRole('dialog', { name: strings.deletion.title(1) }).waitFor()
  await expect.poll(() => shown()).toEqual(before)
  await guest.button(strings.cancel).click()
})

test('G22 the trash restores selected files, deletes some permanently, and is emptied', async () => {
  const { guest, page, tiles, shown } = await opened(5)
  await using _ = guest
  const before = await shown()
  await page.keyboard.press('Control+a')
  await page.getByText(strings.selection.count(5)).first().waitFor()
  await tiles.nth(4).getByRole('checkbox').uncheck()
  await page.keyboard.press('Delete')
  await page.getByText(strings.deleted.trashed(4)).first().waitFor()

  // By keyboard alone.
  await guest.button(strings.settings.label).press('Enter')
  await page.getByRole('link', { name: strings.sections.trash }).press('Enter')
  const list = page.getByRole('list', { name: strings.trash.list })
  const rows = list.getByRole('listitem')
  await rows.nth(3).waitFor()
  await expect.poll(() => page.url()).toMatch(/#trash$/)
  await expect.poll(() => rows.filter({ hasText: strings.trash.left(30) }).count()).toBe(4)
  const row = (id: string | undefined) => list.locator(`[data-id="${id}"]`).getByRole('checkbox')
  await row(before[1]).press('Space')
  await page.setViewportSize({ width: 375, height: 700 })
  const topOf = async (name: string) => (await guest.button(name).boundingBox())?.y ?? Number.NaN
  await expect
    .poll(async () => (await topOf(strings.trash.restore)) - (await topOf(strings.trash.delete)))
    .toBe(0)
  const { promise: released, resolve: release } = Promise.withResolvers<void>()
  await page.route('**/api/trash/restore', async (route) => {
    await released
    await route.continue()
  })
  await guest.button(strings.trash.restore).press('Enter')
  // What is selected during the request stays selected.
  await row(before[2]).press('Space')
  release()
  await page.getByText(strings.deleted.restored(1)).first().waitFor()
  await until('three rows', async () => (await rows.count()) === 3)
  await guest.button(strings.trash.delete).press('Enter')
  const question = page.getByRole('dialog', { name: strings.trash.confirmDelete(1) })
  await question.getByRole('button', { name: strings.cancel }).press('Enter')
  await expect.poll(() => rows.count()).toBe(3)
  await guest.button(strings.trash.delete).press('Enter')
  await question.getByRole('button', { name: strings.trash.delete }).press('Enter')
  await page.getByText(strings.trash.deleted(1)).first().waitFor()
  await until('two rows', async () => (await rows.count()) === 2)

  await question.waitFor({ state: 'detached' })
  await guest.button(strings.trash.empty).press('Enter')
  const all = page.getByRole('dialog', { name: strings.trash.confirmEmpty })
  await all.getByRole('button', { name: strings.trash.empty }).press('Enter')
  await page.getByRole('heading', { name: strings.trash.none }).waitFor()
  await all.waitFor({ state: 'detached' })
  await guest.button(strings.back).press('Enter')
  await until(
    'two files',
    async () => JSON.stringify(await shown()) === JSON.stringify([before[1], before[4]]),
  )
})
