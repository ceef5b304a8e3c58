import type { Browser } from 'playwright-core'
import { Type } from 'typebox'
import { Value } from 'typebox/value'
import { beforeAll, expect } from 'vitest'
import { strings } from '../../packages/gallery/src/strings.ts'
import { browserTest } from '../harness/browser.ts'
import { sharedBrowser } from '../harness/chromium.ts'
import { runHere } from '../harness/commands.ts'
import { seed } from '../harness/seed.ts'
import type { SharedServer } from '../harness/server.ts'
import { sharedServer } from '../harness/shared-server.ts'
import { uniqueName } from '../harness/unique-name.ts'
import { until } from '../harness/until.ts'
import { visit } from './visit.ts'

/** Rows without bytes, of which seven of ten are pictures. */
const items = 100_000
const Ids = Type.Array(Type.String())

let browser: Browser
let server: SharedServer
let token: string
beforeAll(async () => {
  server = await sharedServer()
  browser = await sharedBrowser()
  const large = await seed(server, '--items', `${items}`, '--bucket', uniqueName('large'))
  token = large.token
  await runHere(server.data, 'bucket set', large.bucket, '--trash-days', '30')
})

browserTest(
  'G18, G21 in a bucket of 100,000: search, scroll to the end, select 500, delete, undo',
  async () => {
    await using guest = await visit(browser, { ...server, token }, { hash: '' })
    await guest.signIn(token)
    const { page } = guest
    const tiles = page.locator('.timeline .tile')
    await page.getByText(strings.files(items)).waitFor()
    await page.getByLabel(strings.filter.search).fill('clip-77775')
    await tiles.filter({ hasText: 'clip-77775.mp4' }).waitFor()
    expect(await tiles.count()).toBe(1)
    await guest.button(strings.filter.clear).click()
    await page.getByText(strings.files(items)).waitFor()
    await until('the whole list', () => page.evaluate('document.documentElement.scrollHeight > 1_000_000'))

    const authorization = `Bearer ${token}`
    const response = await server.request('/api/items?limit=500', { headers: { authorization } })
    const { data } = Value.Parse(
      Type.Object({ data: Type.Array(Type.Object({ id: Type.String() })) }),
      await response.json(),
    )
    const [last, fiveHundredth] = [data[0]?.id, data[499]?.id]
    const tile = (id: string | undefined) => page.locator(`.timeline [data-id="${id}"]`)
    await page.evaluate('document.activeElement.blur()')
    await page.keyboard.press('End')
    await tile(last).getByRole('checkbox').check()
    await page.mouse.move(600, 500)
    const scrolled = async () => Value.Parse(Type.Number(), await page.evaluate('scrollY'))
    for (let steps = 0; steps < 100 && (await tile(fiveHundredth).count()) === 0; steps += 1) {
      const top = await scrolled()
      await page.mouse.wheel(0, -500)
      // Not before the items on the screen are loaded.
      await until('the next rows', async () => (await scrolled()) !== top && (await tiles.count()) > 20)
    }
    await tile(fiveHundredth)
      .getByRole('checkbox')
      .click({ modifiers: ['Shift'] })
    await page.getByText(strings.selection.count(500)).first().waitFor()
    expect(await tiles.count()).toBeLessThan(250)
    await page.keyboard.press('Delete')
    await page.getByText(strings.deletion.trashed(500)).first().waitFor()
    await page.getByText(strings.files(items - 500)).waitFor()
    const shown = async () =>
      Value.Parse(
        Ids,
        await page.evaluate(
          `[...document.querySelectorAll('.timeline .tile')].map(({ dataset }) => dataset.id)`,
        ),
      )
    const left = await shown()
    const deleted = new Set(data.map(({ id }) => id))
    expect(left.length).toBeGreaterThan(0)
    expect(left.filter((id) => deleted.has(id))).toEqual([])

    await guest.button(strings.deletion.undo).click()
    await page.getByText(strings.trash.restored(500)).first().waitFor()
    await page.getByText(strings.files(items)).waitFor()
    await page.evaluate('document.activeElement.blur()')
    const oldest = data.map(({ id }) => id)
    await until('the oldest at their places', async () => {
      // The list grows while it is loaded.
      await page.keyboard.press('End')
      const last = (await shown()).slice(-10)
      return JSON.stringify(last) === JSON.stringify(oldest.slice(0, 10).reverse())
    })
    const restored = Value.Parse(
      Type.Object({ data: Type.Array(Type.Object({ id: Type.String() })) }),
      await (await server.request('/api/items?limit=500', { headers: { authorization } })).json(),
    )
    expect(restored.data.map(({ id }) => id)).toEqual(oldest)
  },
)
