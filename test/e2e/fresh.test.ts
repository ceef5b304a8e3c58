import type { Browser } from 'playwright-core'
import { beforeAll, expect, test } from 'vitest'
import { strings } from '../../packages/gallery/src/strings.ts'
import { newToken } from '../client/buckets.ts'
import { sharedBrowser } from '../harness/chromium.ts'
import { runHere } from '../harness/commands.ts'
import { quarters } from '../harness/pictures.ts'
import type { SharedServer } from '../harness/server.ts'
import { sharedServer } from '../harness/shared-server.ts'
import { makeToken } from '../harness/token.ts'
import { until } from '../harness/until.ts'
import { upload } from '../harness/upload.ts'
import { type Visit, visit } from './visit.ts'

let browser: Browser
let server: SharedServer
beforeAll(async () => {
  server = await sharedServer()
  browser = await sharedBrowser()
})

/** A new bucket with `files` files, and a visit to its first page with a clock that the test moves. */
async function scene(bucket: string, files: number) {
  const token = await newToken(server, bucket)
  const as = { ...server, token }
  const items: string[] = []
  const add = async (name: string) => {
    const form = new FormData()
    form.append('file', new Blob([name]), name)
    const response = await server.request('/api/media', {
      method: 'POST',
      body: form,
      headers: { authorization: `Bearer ${token}` },
    })
    items.push(((await response.json()) as { id: string }).id)
  }
  for (let index = 1; index <= files; index += 1) await add(`${index}.bin`)
  const guest = await visit(browser, as, { movesClock: true })
  await guest.signIn(token)
  await guest.files.getByText('1.bin', { exact: true }).waitFor()
  return {
    guest,
    token,
    items,
    add,
    remove: (id: string | undefined) =>
      server.request(`/api/media/${id}`, { method: 'DELETE', headers: { authorization: `Bearer ${token}` } }),
  }
}

const picture = () => quarters(200, 200).jpeg().toBuffer()

const listings = ({ requests }: Visit) => requests.filter((url) => url.includes('/api/media?page='))
/** Advances the clock by more than the refresh interval. */
const pass = ({ context }: Visit) => context.clock.fastForward(11_000)
/** Hides the page, or shows it again. */
const see = ({ page }: Visit, state: 'hidden' | 'visible') =>
  page.evaluate(`Object.defineProperty(document, 'visibilityState', { configurable: true, get: () => '${state}' });
    document.dispatchEvent(new Event('visibilitychange'))`)

test('G8 changes by others appear; selection, focus and scroll position stay', async () => {
  const { guest, add, items, remove } = await scene('others', 12)
  await using _ = guest
  const { page } = guest
  const box = (number: number) => page.getByLabel(strings.selection.select(`${number}.bin`), { exact: true })
  await page.setViewportSize({ width: 700, height: 400 })
  await box(5).check()
  await box(2).focus()
  await page.evaluate('scrollTo(0, 120)')
  await page.evaluate('document.activeElement.dataset.same = "yes"')
  for (let index = 13; index <= 21; index += 1) await add(`${index}.bin`)
  await remove(items[2])
  await pass(guest)

  await guest.files.getByText('13.bin', { exact: true }).waitFor()
  await expect.poll(() => guest.files.getByText('3.bin', { exact: true }).count()).toBe(0)
  await page.getByText(strings.files(20), { exact: true }).waitFor()
  await expect.poll(() => box(5).isChecked()).toBe(true)
  await expect
    .poll(() => page.evaluate('[document.activeElement.dataset.same, scrollY]'))
    .toEqual(['yes', 120])

  // An unchanged listing is a 304.
  await pass(guest)
  const [url = ''] = listings(guest)
  await until('a 304', () => guest.statusesOf(url).at(-1) === 304)
  await add('22.bin')
  await pass(guest)
  await page.getByText(strings.files(21), { exact: true }).waitFor()
})

test('G8 the listing does not change below an open file; a hidden page sends no requests until it is visible', async () => {
  const { guest, add, items, remove } = await scene('hidden', 3)
  await using _ = guest
  const { page } = guest
  await guest.files.getByRole('link').nth(1).click()
  await page.getByRole('dialog').waitFor()
  const asked = listings(guest).length
  await remove(items[0])
  await add('4.bin')
  await pass(guest)
  expect(listings(guest)).toHaveLength(asked)
  await expect.poll(() => page.getByRole('dialog').isVisible()).toBe(true)
  await page.keyboard.press('Escape')
  await page.getByRole('dialog').waitFor({ state: 'detached' })
  await pass(guest)
  await guest.files.getByText('4.bin', { exact: true }).waitFor()
  await expect.poll(() => guest.files.getByText('1.bin', { exact: true }).count()).toBe(0)

  await see(guest, 'hidden')
  await add('5.bin')
  const before = listings(guest).length
  for (let times = 0; times < 10; times += 1) await pass(guest)
  expect(listings(guest)).toHaveLength(before)
  const start = performance.now()
  await see(guest, 'visible')
  await guest.files.getByText('5.bin', { exact: true }).waitFor()
  const sent = listings(guest).length - before
  // At once, and then not more often than at the interval.
  expect(sent).toBeGreaterThan(0)
  expect(sent).toBeLessThanOrEqual(1 + (performance.now() - start) / 10_000)
})

test('FE6, G8 uploads, edits and deletions by others appear as they happen', async () => {
  const { guest, token, items, add, remove } = await scene('followed', 2)
  await using _ = guest
  const { page } = guest
  const shown = (name: string) => guest.files.getByText(name, { exact: true })
  // From here on, the clock stands still until the page knows of a change, and then during requests. After ten seconds it would ask by itself.
  const followed = () => guest.requests.filter((url) => /changes\?.*wait=/.test(url)).length
  const busy = new Set<unknown>()
  page.on('request', (request) => {
    if (!request.url().includes('wait=')) busy.add(request)
  })
  page.on('requestfinished', (request) => busy.delete(request))
  page.on('requestfailed', (request) => busy.delete(request))
  await page.clock.pauseAt(Number(await page.evaluate('Date.now()')) + 60_000)
  // The clock has ended the earlier request.
  await see(guest, 'hidden')
  await page.clock.runFor(2_000)
  const earlier = followed()
  await see(guest, 'visible')
  await until('the page follows the changes', () => followed() > earlier)
  const step = 100
  const appears = async (change: () => Promise<unknown>, check: () => boolean | Promise<boolean>) => {
    const known = followed()
    await change()
    let passed = 0
    await until('the change', async () => {
      if (followed() > known && busy.size === 0 && passed + step < 10_000) {
        await page.clock.runFor(step)
        passed += step
      }
      return check()
    })
  }
  const isShown = (name: string) => async () => (await shown(name).count()) === 1
  await appears(() => add('3.bin'), isShown('3.bin'))
  const body = JSON.stringify({ filename: 'renamed.bin' })
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/merge-patch+json' }
  await appears(
    () => server.request(`/api/media/${items[1]}`, { method: 'PATCH', body, headers }),
    isShown('renamed.bin'),
  )
  await appears(
    () => remove(items[0]),
    async () => (await shown('1.bin').count()) === 0,
  )
  await expect.poll(() => page.getByRole('dialog').count()).toBe(0)
})

test('G8 where requests that wait are cut, changes appear by conditional requests', async () => {
  const { guest, add } = await scene('cut', 1)
  await using _ = guest
  await guest.context.route(/changes\?.*wait=/, (route) => route.abort())
  for (const name of ['2.bin', '3.bin']) {
    await add(name)
    await pass(guest)
    await guest.files.getByText(name, { exact: true }).waitFor()
  }
})

test('A7, G6 an open page notices that its token is revoked', async () => {
  await upload(server, 'x', { name: 'notes.bin' })
  const { token, id } = await makeToken(server, '--bucket', server.bucket)
  await using guest = await visit(browser, server, { movesClock: true })
  await guest.signIn(token)
  await guest.files.first().waitFor()
  await runHere(server.data, 'token revoke', id)
  await pass(guest)
  await guest.page.getByText(strings.signIn.ended).waitFor()
})

test('a file that is uploaded twice is listed twice', async () => {
  const { guest, token } = await scene('again', 1)
  await using _ = guest
  const file = { name: 'same.bin', mimeType: 'text/plain', buffer: Buffer.from('same') }
  for (let times = 1; times <= 2; times += 1) {
    await guest.choose(strings.header.upload, file)
    await until('the item', () => guest.files.count().then((count) => count === 1 + times))
  }
  const page = await server.request('/api/media', { headers: { authorization: `Bearer ${token}` } })
  expect(((await page.json()) as { total: number }).total).toBe(3)
})

test('opening the gallery takes 3 API requests, and a refresh that finds no change takes one', async () => {
  const { guest } = await scene('few', 12)
  await using _ = guest
  const { page } = guest
  const opened = () => guest.requests.slice(guest.requests.lastIndexOf(`${server.url}/`))
  // Otherwise a page that takes longer than the refresh interval to open would refresh.
  await page.clock.pauseAt(Date.now() + 60_000)
  const url = page.url()
  // Ends the requests of the first visit, which a reload could leave to be sent after its own first one.
  await page.goto('about:blank')
  // Responses: a request in progress would be sent again when the clock passes its timeout.
  const sizes = () => guest.statusesOf(`${server.url}/api/bucket`).length
  let known = sizes()
  await page.goto(url)
  await guest.files.getByText('10.bin', { exact: true }).waitFor()
  // The size of the bucket is requested last.
  await until('the end of the second visit', async () => {
    await page.clock.runFor(1)
    return sizes() > known
  })
  const api = opened().filter((url) => url.includes('/api/'))
  expect(api.map((url) => new URL(url).pathname).sort()).toEqual([
    ...['/api/bucket', '/api/items', '/api/token'],
  ])
  expect(opened().length - api.length).toBeLessThan(8)
  // The first refresh learns the entity tag of the listing.
  known = sizes()
  await pass(guest)
  await until('the first refresh', () => sizes() > known)
  const before = guest.requests.length
  const asked = () => guest.requests.slice(before).filter((url) => !url.includes('/api/changes?'))
  // The page sets the timer of the second refresh when the first one has ended.
  await until('the second refresh', async () => {
    await pass(guest)
    return asked().length > 0
  })
  expect(asked()).toEqual([`${server.url}/api/media?page=1`])
})

test('V6 a thumbnail that is temporarily refused is requested again after Retry-After', async () => {
  const token = await newToken(server, 'pictures')
  const authorization = `Bearer ${token}`
  const { id } = await upload(server, new Uint8Array(await picture()), {
    name: 'good.jpg',
    type: 'image/jpeg',
    authorization,
  })
  const torn = new Uint8Array((await picture()).subarray(0, 300))
  await upload(server, torn, { name: 'torn.jpg', type: 'image/jpeg', authorization })
  await using guest = await visit(browser, server, { movesClock: true })
  const { page } = guest
  let refused = 0
  await page.route(`**/media/${id}?variant=thumb&wait=0`, async (route) => {
    if (refused >= 6) return route.continue()
    refused += 1
    await route.fulfill({ status: 503, headers: { 'retry-after': '60' } })
  })
  await guest.signIn(token)
  // Each try is an image request and a HEAD request.
  for (const asked of [2, 4, 6]) {
    await until('a refusal', () => refused === asked)
    await page.clock.runFor(10_000)
    expect(refused).toBe(asked)
    // The timer may start after the response.
    await until('the next try', async () => {
      await page.clock.runFor(1000)
      return refused > asked || (await guest.files.locator('img[data-state=shown]').count()) === 1
    })
  }
  await guest.files.locator('img[data-state=shown]').waitFor()
  await guest.files.filter({ hasText: 'torn.jpg' }).getByText(strings.listing.noThumbnail).waitFor()
})
