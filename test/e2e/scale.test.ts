import type { Browser } from 'playwright-core'
import { Type } from 'typebox'
import { Value } from 'typebox/value'
import { beforeAll, expect, test } from 'vitest'
import { strings } from '../../packages/gallery/src/strings.ts'
import { sharedBrowser } from '../harness/chromium.ts'
import { runHere } from '../harness/commands.ts'
import { seed } from '../harness/seed.ts'
import type { SharedServer } from '../harness/server.ts'
import { sharedServer } from '../harness/shared-server.ts'
import { uniqueName } from '../harness/unique-name.ts'
import { until } from '../harness/until.ts'
import { visit } from './visit.ts'

/**
 * Small files, of which seven of ten are bitmaps; with MEDIABUCKET_TEST_SCALE=pictures generated pictures. These take 20 s more, because
 * the service renders the thumbnails of all that are shown.
 */
const items = 100_000
const withPictures = process.env['MEDIABUCKET_TEST_SCALE'] === 'pictures'
const Ids = Type.Array(Type.String())

let browser: Browser
let server: SharedServer
let token: string
beforeAll(async () => {
  server = await sharedServer()
  browser = await sharedBrowser()
  const large = await seed(
    server,
    '--items',
    `${items}`,
    '--bucket',
    uniqueName('large'),
    ...(withPictures ? ['--pictures'] : []),
  )
  token = large.token
  await runHere(server.data, 'bucket set', large.bucket, '--trash-days', '30')
})

test('G18, G21 in a bucket of 100,000: search, scroll to the end, select 500, delete, undo', async () => {
  await using guest = await visit(browser, { ...server, token }, { hash: '' })
  await guest.signIn(token)
  const { page } = guest
  const tiles = page.locator('.timeline .tile')
  await page.getByText(strings.files(items)).waitFor()
  const searched = withPictures ? 'Picture 77775.png' : 'clip-77775.mp3'
  await page.getByLabel(strings.filter.search).fill(searched)
  await tiles.filter({ hasText: searched }).waitFor()
  await expect.poll(() => tiles.count()).toBe(1)
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
  await expect.poll(() => tiles.count()).toBeLessThan(250)
  await page.keyboard.press('Delete')
  await page.getByText(strings.deleted.trashed(500)).first().waitFor()
  await page.getByText(strings.files(items - 500)).waitFor()
  const shown = async () =>
    Value.Parse(
      Ids,
      await page.evaluate(
        `[...document.querySelectorAll('.timeline .tile')].map(({ dataset }) => dataset.id)`,
      ),
    )
  const deleted = new Set(data.map(({ id }) => id))
  // All items near the screen were deleted: the earlier ones are loaded first.
  await until('only other items', async () => {
    const left = await shown()
    return left.length > 0 && left.every((id) => !deleted.has(id))
  })

  await guest.button(strings.deleted.undo).click()
  await page.getByText(strings.deleted.restored(500)).first().waitFor()
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
})

// The long form.
if (withPictures)
  test('G18, G29 jumps and scrolling among 100,000 pictures leave document and memory bounded', async () => {
    await using guest = await visit(browser, { ...server, token }, { hash: '' })
    await guest.signIn(token)
    const { page } = guest
    await until('the whole list', () => page.evaluate('document.documentElement.scrollHeight > 1_000_000'))
    const tools = await guest.context.newCDPSession(page)
    await tools.send('Performance.enable')
    const measure = async () => {
      await tools.send('HeapProfiler.collectGarbage')
      const { metrics } = await tools.send('Performance.getMetrics')
      const metric = (wanted: string) => metrics.find(({ name }) => name === wanted)?.value ?? 0
      return { heap: metric('JSHeapUsedSize'), nodes: metric('Nodes') }
    }
    await page.mouse.move(600, 500)
    const tour = async (jumps: number) => {
      for (let jump = 0; jump < jumps; jump += 1) {
        const share = ((jump * 7 + jumps) % 20) / 20
        await page.evaluate(`scrollTo(0, document.documentElement.scrollHeight * ${share})`)
        await until('a loaded picture', () => page.locator('.timeline img[data-state=shown]').count())
        for (let step = 0; step < 10; step += 1) await page.mouse.wheel(0, 400)
        await page.locator('.timeline[aria-busy=false]').waitFor()
        await expect.poll(() => page.locator('.timeline .tile').count()).toBeLessThan(250)
      }
    }
    await tour(10)
    const before = await measure()
    await tour(30)
    const after = await measure()
    console.log('after 10 and 40 jumps:', before, after)
    expect(after.nodes).toBeLessThan(before.nodes * 1.5)
    expect(after.heap).toBeLessThan(before.heap * 1.5 + 4_000_000)
  })
