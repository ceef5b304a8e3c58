import type { Browser, Page, Route } from 'playwright-core'
import { beforeAll, describe, expect, test } from 'vitest'
import { strings } from '../../packages/gallery/src/strings.ts'
import { sharedBrowser } from '../harness/chromium.ts'
import { seededRandom } from '../harness/random.ts'
import type { SharedServer } from '../harness/server.ts'
import { sharedServer } from '../harness/shared-server.ts'
import { upload } from '../harness/upload.ts'
import { type Visit, visit } from './visit.ts'

let browser: Browser
let server: SharedServer
let ids: readonly string[]

/** A new bucket with `count` files, and their ids by number, from 1. */
async function filled(count: number): Promise<[SharedServer, readonly string[]]> {
  const filling = await sharedServer()
  const known = ['']
  for (let item = 1; item <= count; item++)
    known.push((await upload(filling, `Text ${item}.`, { name: `file-${item}.txt` })).id)
  return [filling, known]
}

beforeAll(async () => {
  const [filling, known] = await filled(23)
  server = filling
  ids = known
  browser = await sharedBrowser()
})

const hashOf = ({ page }: Visit) => new URL(page.url()).hash

/** Changes the URL of the open page, as by typing. */
async function typed(guest: Visit, hash: string): Promise<string> {
  await guest.page.goto(`${new URL(guest.page.url()).origin}/${hash}`)
  return hash
}

/** Waits until the viewer shows the content and the name of the file. */
async function shows({ page }: Visit, number: number): Promise<void> {
  const dialog = page.getByRole('dialog', { name: strings.viewer.label(`file-${number}.txt`), exact: true })
  await dialog.getByText(`Text ${number}.`, { exact: true }).filter({ visible: true }).waitFor()
}

/** Of addresses and steps in a test of orders. */
const rounds = 12

/** An address with an item, and perhaps a numbered page or another order. */
function addressOf(random: (limit: number) => number, id: string): string {
  const place = ['page=1', 'page=2', 'page=3', 'page=9', 'order=oldest', 'order=newest'][random(6)]
  return `#${place}&item=${id}`
}

/** Holds the requests of the page, and sends one of those that wait at a time, in an order from the seed. */
async function shuffleResponses(page: Page, random: (limit: number) => number): Promise<AsyncDisposable> {
  const waiting: Route[] = []
  const matching = /\/(api|media)\//
  await page.route(matching, (route) => void waiting.push(route))
  const timer = setInterval(() => {
    // Sometimes none, so that the page has sent what follows from the last response.
    const [route] = random(3) > 0 ? waiting.splice(random(waiting.length || 1), 1) : []
    // A request that the page has aborted cannot be continued.
    void route?.continue().catch(() => undefined)
  }, 20)
  return {
    async [Symbol.asyncDispose]() {
      clearInterval(timer)
      await page.unrouteAll({ behavior: 'ignoreErrors' })
      await Promise.allSettled(waiting.map((route) => route.continue()))
    },
  }
}

const gone = ({ page }: Visit) => page.getByRole('dialog', { name: strings.viewer.deleted, exact: true })

describe('a URL with an item', () => {
  test('G18 shows the item, wherever the page of the address is, with steps to its neighbours', async () => {
    await using guest = await visit(browser, server, { hash: `#page=1&item=${ids[15]}` })
    await guest.signIn(server.token)
    await shows(guest, 15)
    await expect.poll(() => hashOf(guest)).toBe(`#order=oldest&item=${ids[15]}`)
    for (const [page, number] of [
      [1, 4],
      [2, 3],
      [2, 12],
      [3, 2],
      [1, 22],
    ] as const) {
      await typed(guest, `#page=${page}&item=${ids[number]}`)
      await shows(guest, number)
      await guest.button(strings.viewer.next).waitFor()
      await shows(guest, number)
      await expect.poll(() => hashOf(guest)).toBe(`#order=oldest&item=${ids[number]}`)
    }
    await guest.button(strings.close).click()
    await expect.poll(() => hashOf(guest)).toBe('#order=oldest')
  })

  test('G18 another address is shown while the items around the former one are still loading', async () => {
    await using guest = await visit(browser, server, { hash: '#order=oldest' })
    await guest.signIn(server.token)
    await guest.files.first().waitFor()
    // The items before the first one of a page are not loaded.
    await guest.page.route('**/api/items?*order=newest*', () => undefined)
    await typed(guest, `#page=2&item=${ids[12]}`)
    await shows(guest, 12)
    await typed(guest, `#page=3&item=${ids[2]}`)
    await shows(guest, 2)
    await expect.poll(() => hashOf(guest)).toBe(`#order=oldest&item=${ids[2]}`)
  })

  test('G18, M3 steps to the neighbours stay while another page of the list is loaded', async () => {
    await using guest = await visit(browser, server)
    await guest.signIn(server.token)
    // All items.
    await guest.files.nth(22).waitFor()
    // The items before the first one of a page are not loaded.
    await guest.page.route('**/api/items?*order=newest*', () => undefined)
    for (const number of [18, 21]) {
      await typed(guest, `#order=oldest&item=${ids[number]}`)
      await shows(guest, number)
      await typed(guest, `#page=3&item=${ids[number]}`)
      await guest.files.nth(3).waitFor({ state: 'detached' })
      await guest.page.keyboard.press('ArrowLeft')
      await shows(guest, number - 1)
      await guest.button(strings.viewer.previous).click()
      await shows(guest, number - 2)
      await expect.poll(() => hashOf(guest)).toBe(`#order=oldest&item=${ids[number - 2]}`)
    }
  })

  test('G18, M3 steps to items that are not loaded yet are taken when they are', async () => {
    await using guest = await visit(browser, server, { hash: '#order=newest' })
    await guest.signIn(server.token)
    await guest.files.first().waitFor()
    const { promise: loading, resolve: load } = Promise.withResolvers<void>()
    await guest.page.route('**/api/items?*order=newest*', (route) => loading.then(() => route.continue()))
    await typed(guest, `#page=3&item=${ids[22]}`)
    await shows(guest, 22)
    await guest.button(strings.viewer.previous).waitFor()
    for (let step = 0; step < 4; step++) await guest.page.keyboard.press('ArrowLeft')
    await shows(guest, 21)
    await guest.page.keyboard.press('ArrowRight')
    load()
    await shows(guest, 19)
    await expect.poll(() => hashOf(guest)).toBe(`#order=oldest&item=${ids[19]}`)
  })

  test('G18, M3 there are steps to the neighbours in another order when its items are loaded', async () => {
    await using guest = await visit(browser, server, { hash: `#order=newest&item=${ids[4]}` })
    await guest.signIn(server.token)
    await shows(guest, 4)
    await guest.button(strings.viewer.next).waitFor()
    const { promise: loading, resolve: load } = Promise.withResolvers<void>()
    await guest.page.route('**/api/items?*order=oldest*', (route) => loading.then(() => route.continue()))
    await typed(guest, `#order=oldest&item=${ids[4]}`)
    await guest.button(strings.viewer.next).waitFor({ state: 'detached' })
    await shows(guest, 4)
    load()
    await guest.button(strings.viewer.next).click()
    await shows(guest, 5)
  })

  test('G18, M3 in any order of the responses, the last address and the steps from it are shown', async () => {
    const random = seededRandom()
    await using guest = await visit(browser, server)
    await guest.signIn(server.token)
    await guest.files.first().waitFor()
    await using _ = await shuffleResponses(guest.page, random)
    for (let round = 0; round < rounds; round++) {
      let number = 1 + random(23)
      for (let others = random(3); others > 0; others--)
        await typed(guest, addressOf(random, ids[1 + random(23)] ?? ''))
      await typed(guest, addressOf(random, ids[number] ?? '').replace('order=newest', 'order=oldest'))
      await shows(guest, number)
      const forward = number < 12
      await guest.button(forward ? strings.viewer.next : strings.viewer.previous).waitFor()
      for (let steps = random(4); steps > 0; steps--) {
        await guest.page.keyboard.press(forward ? 'ArrowRight' : 'ArrowLeft')
        number += forward ? 1 : -1
      }
      await shows(guest, number)
      await expect.poll(() => hashOf(guest)).toBe(`#order=oldest&item=${ids[number]}`)
      if (random(3) > 0) continue
      await guest.button(strings.close).click()
      await expect.poll(() => hashOf(guest)).toBe('#order=oldest')
    }
  })

  test('M3 arrow keys step to the next and the previous file; an unknown item does not change the address, and a button leads back', async () => {
    await using guest = await visit(browser, server, { hash: `#order=oldest&item=${ids[10]}` })
    await guest.signIn(server.token)
    await shows(guest, 10)
    await guest.page.keyboard.press('ArrowRight')
    await shows(guest, 11)
    await expect.poll(() => hashOf(guest)).toBe(`#order=oldest&item=${ids[11]}`)
    await guest.page.keyboard.press('ArrowLeft')
    await shows(guest, 10)
    await expect.poll(() => hashOf(guest)).toBe(`#order=oldest&item=${ids[10]}`)

    const hash = await typed(guest, '#order=oldest&item=zzzz')
    await gone(guest).getByText(strings.viewer.deleted).waitFor()
    await expect.poll(() => hashOf(guest)).toBe(hash)
    await guest.button(strings.back).click()
    await guest.files.getByText('file-1.txt', { exact: true }).waitFor()
    await expect.poll(() => hashOf(guest)).toBe('#order=oldest')
  })
})

test('M2 a file that others deleted is reported as deleted', async () => {
  const [own, known] = await filled(12)
  await using guest = await visit(browser, own)
  await guest.signIn(own.token)
  await guest.files.getByText('file-3.txt').waitFor()
  // The page still lists it until the request that would notice the change is sent.
  const { promise: opened, resolve: open } = Promise.withResolvers<void>()
  await guest.page.route('**/api/media?page=*', async (request) => {
    await opened
    await request.continue()
  })
  await own.request(`/api/media/${known[3]}`, { method: 'DELETE' })
  await guest.files.getByRole('link', { name: 'file-3.txt' }).click()
  await gone(guest).waitFor()
  await expect.poll(() => hashOf(guest)).toBe(`#order=oldest&item=${known[3]}`)
  open()
  await guest.button(strings.back).click()
  await guest.files.getByText('file-3.txt').waitFor({ state: 'detached' })
  await guest.files.getByText('file-11.txt').waitFor()
})
