import type { Browser, Page } from 'playwright-core'
import { Type } from 'typebox'
import { Value } from 'typebox/value'
import { beforeAll, describe, expect, test } from 'vitest'
import { strings } from '../../packages/gallery/src/strings.ts'
import { sharedBrowser } from '../harness/chromium.ts'
import { seed } from '../harness/seed.ts'
import type { SharedServer } from '../harness/server.ts'
import { sharedServer } from '../harness/shared-server.ts'
import { makeToken } from '../harness/token.ts'
import { uniqueName } from '../harness/unique-name.ts'
import { until } from '../harness/until.ts'
import { upload } from '../harness/upload.ts'
import { picture } from './files.ts'
import { type Visit, visit } from './visit.ts'

let browser: Browser
let server: SharedServer
let large: { readonly token: string; readonly total: number }
beforeAll(async () => {
  server = await sharedServer()
  browser = await sharedBrowser()
  large = await seed(server, '--items', '2000', '--bucket', uniqueName('large'))
})

const Ids = Type.Array(Type.String())
/** The ids of the items on the screen, in order. */
const shown = async (page: Page) =>
  Value.Parse(
    Ids,
    await page.evaluate(`[...document.querySelectorAll('.timeline .tile')].filter((tile) => {
      const { top, bottom } = tile.getBoundingClientRect()
      return bottom > 80 && top < innerHeight
    }).map((tile) => tile.dataset.id)`),
  )
const drawn = ({ page }: Visit) => page.locator('.timeline .tile').count()
const settled = ({ page }: Visit) =>
  until('items on the screen', async () => {
    const idle = (await page.locator('.timeline[aria-busy=false]').count()) === 1
    return idle && (await shown(page)).length > 0
  })

/** The ids of all items that a query selects, newest first. */
const newestFirst = (token: string, query = '') => listed(token, `order=newest&${query}`)

/** The ids of all items that a query selects, in its order. */
async function listed(token: string, query: string): Promise<string[]> {
  const response = await server.request(`/api/items?${query}`, {
    headers: { authorization: `Bearer ${token}`, accept: 'application/x-ndjson' },
  })
  const lines = (await response.text()).trim().split('\n')
  return lines.map((line) => Value.Parse(Type.Object({ id: Type.String() }), JSON.parse(line)).id)
}

async function opened(token: string, options: Parameters<typeof visit>[2] = {}): Promise<Visit> {
  const guest = await visit(browser, { ...server, token }, { hash: '', ...options })
  await guest.signIn(token)
  await settled(guest)
  return guest
}

describe('scrolling', () => {
  test('G18 every item is shown once in order, while others upload and delete; the document stays small', async () => {
    await using guest = await opened(large.token)
    const { page } = guest
    const all = await newestFirst(large.token)
    const headers = { authorization: `Bearer ${large.token}` }
    const seen: string[] = []
    const gone = new Set<string>()
    await page.mouse.move(600, 500)
    for (let step = 0; seen.length < 280; step += 1) {
      await settled(guest)
      const now = await shown(page)
      for (const id of now) if (!seen.includes(id)) seen.push(id)
      expect(await drawn(guest)).toBeLessThan(250)
      if (step % 5 === 2) {
        await upload(server, 'x', { name: 'new.txt', authorization: headers.authorization })
        const id = all[seen.length + 150] ?? ''
        gone.add(id)
        await server.request(`/api/media/${id}`, { method: 'DELETE', headers })
      }
      const last = now.at(-1)
      await page.mouse.wheel(0, 500)
      await until('the next items', async () => (await shown(page)).at(-1) !== last)
    }
    const expected = all.filter((id) => !gone.has(id) || seen.includes(id)).slice(0, seen.length)
    expect(seen).toEqual(expected)
  })

  test('G18 the scrollbar leads to the middle, the End key to the last item, Home back to the first', async () => {
    await using guest = await opened(large.token)
    const { page } = guest
    const all = await newestFirst(large.token)
    await until('the size of the bucket', () =>
      page.evaluate('document.documentElement.scrollHeight > 50_000'),
    )
    await page.evaluate('scrollTo(0, document.documentElement.scrollHeight / 2)')
    await until('the middle', async () => {
      const [first = ''] = await shown(page)
      const share = all.indexOf(first) / all.length
      return share > 0.4 && share < 0.6
    })
    // Without gaps in both directions.
    for (const direction of [-1, 1]) {
      for (let step = 0; step < 4; step += 1) {
        const now = await shown(page)
        const start = all.indexOf(now[0] ?? '')
        expect(now).toEqual(all.slice(start, start + now.length))
        await page.mouse.wheel(0, 700 * direction)
        await until('other items', async () => {
          const [first] = await shown(page)
          return first !== undefined && first !== now[0]
        })
        await settled(guest)
      }
    }
    await page.keyboard.press('End')
    await until('the last item', async () => (await shown(page)).at(-1) === all.at(-1))
    await page.keyboard.press('Home')
    await until('the first item', async () => (await shown(page))[0] === all[0])
    expect(await drawn(guest)).toBeLessThan(250)
  })

  test('G18 End leads to the last item, although the size of the bucket arrives later', async () => {
    await using guest = await visit(browser, { ...server, token: large.token }, { hash: '' })
    const { page } = guest
    const { promise: released, resolve: release } = Promise.withResolvers<void>()
    await page.route('**/api/bucket', async (route) => {
      await released
      await route.continue()
    })
    await guest.signIn(large.token)
    await settled(guest)
    const all = await newestFirst(large.token)
    await page.evaluate('document.activeElement.blur()')
    await page.keyboard.press('End')
    release()
    await page.getByText(strings.files(all.length)).waitFor()
    await until('the last item', async () => (await shown(page)).at(-1) === all.at(-1))
    await page.keyboard.press('Home')
    await until('the first item', async () => (await shown(page))[0] === all[0])
  })

  test('G18 Home leads to the top of the page after a search; in its field, Home and End move the caret only', async () => {
    await using guest = await opened(large.token)
    const { page } = guest
    const field = page.getByLabel(strings.filter.search)
    await field.fill('invoice')
    const matches = page.locator('.listing-head', {
      hasText: strings.filter.matches({ count: 100, isExact: false }),
    })
    await matches.waitFor()
    const focusOne = () => page.locator('.timeline a[tabindex="0"]').focus()
    const scrolled = async () => Value.Parse(Type.Number(), await page.evaluate('scrollY'))
    const [first] = await shown(page)
    await focusOne()
    await page.keyboard.press('End')
    await until('other items', async () => {
      const now = await shown(page)
      return now.length > 0 && !now.includes(`${first}`)
    })
    await settled(guest)
    await focusOne()
    await page.keyboard.press('Home')
    await until('the first item', async () => (await shown(page))[0] === first)
    await expect.poll(() => scrolled()).toBe(0)

    const caret = () => page.evaluate('document.activeElement.selectionStart')
    await field.press('Home')
    await expect.poll(() => caret()).toBe(0)
    await field.press('End')
    await expect.poll(() => caret()).toBe('invoice'.length)
    await expect.poll(() => scrolled()).toBe(0)
  })

  test('G8 what others add and delete appears; the items on the screen stay in place', async () => {
    const own = await sharedServer()
    const ids: string[] = []
    for (let number = 1; number <= 60; number += 1)
      ids.push((await upload(own, `${number}`, { name: `file-${number}.txt` })).id)
    await using guest = await visit(browser, own, {
      hash: '',
      options: { viewport: { width: 700, height: 400 } },
      movesClock: true,
    })
    const { page, context } = guest
    await guest.signIn(own.token)
    const tiles = page.locator('.timeline .tile')
    await tiles.filter({ hasText: 'file-60.txt' }).waitFor()
    await upload(own, 'x', { name: 'added.txt' })
    await context.clock.fastForward(11_000)
    await tiles.filter({ hasText: 'added.txt' }).waitFor()
    await page.evaluate('scrollTo(0, 700)')
    const before = await until('items in the middle', async () => {
      const [first] = await shown(page)
      return first !== undefined && first !== ids[59] && (await shown(page))
    })
    const top = () =>
      page.locator(`[data-id="${before[0]}"]`).evaluate((tile) => tile.getBoundingClientRect().top)
    const place = await top()
    for (let number = 0; number < 3; number += 1) await upload(own, 'y', { name: 'more.txt' })
    await own.request(`/api/media/${before.at(-1)}`, { method: 'DELETE' })
    await context.clock.fastForward(11_000)
    await page.locator(`[data-id="${before.at(-1)}"]`).waitFor({ state: 'detached' })
    await expect.poll(async () => Math.abs((await top()) - place)).toBeLessThan(2)
  })
})

describe('the first view', () => {
  test('G19 the first picture takes at most 6 requests and 300 kB', async () => {
    const own = await sharedServer()
    // More than the screen shows.
    for (let number = 1; number <= 16; number += 1)
      await upload(own, new Uint8Array(await picture(number, 800, 600).jpeg().toBuffer()), {
        name: `${number}.jpg`,
      })
    await using guest = await visit(browser, own, { hash: '' })
    await guest.signIn(own.token)
    const { page } = guest
    // Its thumbnails are rendered.
    await page.locator('.timeline img[data-state=shown]').first().waitFor()
    await until(
      'all pictures on the screen',
      async () => (await page.locator('.tile .skeleton').count()) === 0,
    )
    await expect.poll(() => page.evaluate('document.documentElement.scrollHeight > innerHeight')).toBe(true)
    const address = page.url()
    // Ends the requests of the first visit, which a reload could leave to be sent after its own first one.
    await page.goto('about:blank')
    let bytes = 0
    const tools = await guest.context.newCDPSession(page)
    await tools.send('Network.enable')
    tools.on('Network.loadingFinished', ({ encodedDataLength }) => {
      bytes += encodedDataLength
    })
    await tools.send('Network.setCacheDisabled', { cacheDisabled: true })
    await page.goto(address)
    await page.locator('.timeline img[data-state=shown]').first().waitFor()
    const total = bytes
    const opened = guest.requests.slice(guest.requests.lastIndexOf(`${own.url}/`))
    const first = opened.findIndex((url) => url.includes('variant=thumb'))
    expect(opened.slice(0, first + 1).map((url) => url.replace(/\/media\/.*/, '/media/…'))).toHaveLength(6)
    expect(opened.filter((url) => url.includes('/api/items'))).toHaveLength(1)
    expect(total).toBeLessThan(300_000)
  })

  test('the order and the layout are chosen for the next visit too', async () => {
    await using guest = await opened(large.token)
    const { page } = guest
    const all = await newestFirst(large.token)
    await guest.button(strings.timeline.newestFirst).click()
    await until('the oldest', async () => (await shown(page))[0] === all.at(-1))
    await guest.button(strings.view.list).click()
    await page.locator('.as-list').waitFor()
    await page.reload()
    await settled(guest)
    await expect.poll(() => page.locator('.as-list').count()).toBe(1)
    await expect.poll(async () => (await shown(page))[0]).toBe(all.at(-1))
    // G33: as many as are loaded.
    await page.getByLabel(strings.filter.search).fill('invoice')
    await page
      .locator('.listing-head', { hasText: strings.filter.matches({ count: 100, isExact: false }) })
      .waitFor()
  })
})

test('G18 files are ordered by name, in sections by first letter, in both directions and to both ends', async () => {
  const { token, authorization } = await makeToken(server, '--bucket', uniqueName('names'))
  for (const name of ['b 10.txt', 'Ärger.txt', '7.txt', 'B 2.txt', 'a.txt'])
    await upload(server, name, { name, type: '', authorization })
  await using guest = await opened(token)
  const { page } = guest
  await page.getByLabel(strings.timeline.orderBy).selectOption('name')
  /** The sections and the files of the whole list. */
  const drawnList = async () => [
    (await page.locator('.timeline h2').allTextContents()).join(),
    Value.Parse(
      Ids,
      await page.evaluate(
        "[...document.querySelectorAll('.timeline .tile')].map(({ dataset }) => dataset.id)",
      ),
    ).join(),
  ]
  for (const [direction, sections] of [
    ['name', '0–9,A,B'],
    ['name-desc', 'B,A,0–9'],
  ] as const) {
    const expected = await listed(token, `order=${direction}`)
    await until(`the files in the order ${direction}`, async () => {
      const [texts, ids] = await drawnList()
      return texts === sections && ids === expected.join()
    })
    await expect.poll(() => new URL(page.url()).hash).toBe(`#order=${direction}`)
    if (direction === 'name') await guest.button(strings.timeline.names.ascending).click()
  }
  // Another bucket, by its address.
  await using other = await opened(large.token, { hash: '#order=name' })
  const all = await listed(large.token, 'order=name')
  for (const [key, end] of [
    ['End', all.at(-1)],
    ['Home', all[0]],
  ] as const) {
    await until(`what ${key} shows`, async () => {
      // The page may not receive keys yet.
      await other.page.keyboard.press(key)
      const ids = await shown(other.page)
      return (key === 'End' ? ids.at(-1) : ids[0]) === end
    })
  }
})

describe('keyboard', () => {
  test('arrow keys move the focus; a file opens, steps to its neighbours and returns the focus', async () => {
    await using guest = await opened(large.token)
    const { page } = guest
    const all = await newestFirst(large.token)
    const focused = () => page.evaluate('document.activeElement.dataset.item')
    await page.locator('.timeline a[tabindex="0"]').focus()
    await expect.poll(() => focused()).toBe(all[0])
    await page.keyboard.press('ArrowRight')
    await until('the second', async () => (await focused()) === all[1])
    // A key that is pressed before the browser has painted the focus moves it too.
    await page.evaluate(`(async () => {
        const [first] = document.querySelectorAll('.timeline [data-item="${all[0]}"]')
        first.focus()
        await new Promise((resolve) => queueMicrotask(() => queueMicrotask(resolve)))
        first.dispatchEvent(new KeyboardEvent('keydown', { key: 'ArrowRight', bubbles: true }))
      })()`)
    await until('the second again', async () => (await focused()) === all[1])
    await page.keyboard.press('ArrowDown')
    await until('the next row', async () => !all.slice(0, 3).includes(`${await focused()}`))
    await page.keyboard.press('ArrowUp')
    await until('the first row', async () => all.slice(0, 4).includes(`${await focused()}`))
    const at = all.indexOf(`${await focused()}`)
    await page.keyboard.press('Space')
    await page.getByText(strings.selection.count(1)).first().waitFor()
    await page.keyboard.press('Space')
    await page.getByText(strings.selection.count(1)).first().waitFor({ state: 'detached' })
    await page.keyboard.press('Enter')
    await page.getByRole('dialog').waitFor()
    await guest.button(strings.viewer.next).click()
    await until('the next item', () => new URL(page.url()).hash === `#item=${all[at + 1]}`)
    await page.keyboard.press('Escape')
    await page.getByRole('dialog').waitFor({ state: 'detached' })
  })
})

test('G18 an uploaded file appears at once, although the size of the bucket arrives before the items', async () => {
  const own = await sharedServer()
  await upload(own, 'earlier', { name: 'earlier.bin' })
  await using guest = await opened(own.token)
  const { page } = guest
  await page.getByText('earlier.bin').waitFor()
  await until('the first size', () => guest.requests.some((url) => url.endsWith('/api/bucket')))
  // No later refresh shows it.
  await page.route('**/api/media?page=*', (route) => route.fulfill({ status: 304 }))
  await page.route('**/api/items?*', async (route) => {
    const before = guest.statusesOf(`${own.url}/api/bucket`).length
    const response = await route.fetch()
    await until('the size', () => guest.statusesOf(`${own.url}/api/bucket`).length > before)
    await page.getByText(strings.files(2), { exact: true }).waitFor()
    await route.fulfill({ response })
  })
  await guest.choose(strings.header.upload, [
    { name: 'later.bin', mimeType: 'application/octet-stream', buffer: Buffer.from('later') },
  ])
  await guest.page.locator('.timeline').getByText('later.bin').waitFor()
})
